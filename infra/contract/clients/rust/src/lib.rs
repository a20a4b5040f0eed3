//! The client that progenitor generates.

#![allow(unused_imports)]

include!(concat!(env!("OUT_DIR"), "/client.rs"));
