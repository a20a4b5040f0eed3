//! Where a delivery may connect: to the public internet alone, whatever an endpoint's owner writes and
//! whatever the name's server answers. Checked at registration and again for each connection, on the
//! very addresses that are then connected to.

mod policy;
mod public;
mod resolve;
mod url;

pub use policy::{AddressRefusal, Policy, check_resolved};
pub use public::is_public;
pub use resolve::{Resolve, SystemResolver};
pub use url::{EndpointUrl, MAX_URL_CHARS, UrlRefusal};
