//! Endpoints and deliveries as text for people.

mod deliveries;
mod endpoints;

pub(super) use deliveries::{deliveries, delivery, sent};
pub(super) use endpoints::{
    activated, added, changed, disabled, enabled, endpoint, endpoints, expired, removed, rotated,
};
