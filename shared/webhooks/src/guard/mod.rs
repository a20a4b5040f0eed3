//! Which addresses a delivery may connect to.
//!
//! Deliveries reach only the public internet, whatever URL an owner registers and whatever a DNS server answers. The URL
//! is checked at registration and again for each connection, the addresses for each connection. The addresses that pass
//! the check are the ones that are connected to: nothing resolves the name again in between. At registration no name is
//! resolved, so that an owner cannot ask which names there are inside.

mod policy;
mod public;
mod url;

pub use policy::{AddressRefusal, LOOPBACK_VARIABLE, NOT_PUBLIC, Policy, Resolve, SystemResolver, check_resolved};
pub use url::{EndpointUrl, UrlRefusal, is_same_host};
