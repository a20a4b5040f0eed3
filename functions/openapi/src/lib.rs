//! The function behind the gateway's `$default` route: the OpenAPI description, the docs page made from it,
//! and the 404 of every path that does not exist.
//!
//! The description is generated from the types that serialise the answers, and the page from the description,
//! so that neither can tell a story of its own.

mod description;
mod document;
mod events;
mod page;

use std::sync::Arc;

use platform::aws::Missing;
use platform::service::Service;

pub use description::Description;
pub use document::openapi;

/// The function.
pub fn api(service: &Service<'_>) -> Result<Description, Missing> {
    Ok(Description::new(Arc::clone(&service.clock), Arc::clone(&service.meter)))
}
