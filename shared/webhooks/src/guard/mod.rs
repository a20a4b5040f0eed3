//! Which addresses a delivery may connect to.
//!
//! Deliveries reach only the public internet, whatever URL an owner registers and whatever a DNS server answers. URL
//! and addresses are checked at registration and again for each connection. The addresses that pass the check are the
//! ones that are connected to: nothing resolves the name again in between.

mod policy;
mod public;
mod url;

pub use policy::{AddressRefusal, LOOPBACK_VARIABLE, Policy, Resolve, SystemResolver, check_resolved};
pub use url::{EndpointUrl, UrlRefusal};
