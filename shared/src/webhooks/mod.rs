//! Webhook delivery without its I/O: where it may connect, and how a delivery is signed.

pub mod guard;
