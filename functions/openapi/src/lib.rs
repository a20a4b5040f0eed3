//! The `openapi` function serves the OpenAPI document and the docs page. It is also behind the gateway's `$default`
//! route, and responds to every unknown path with a 404.
//!
//! The document is generated from the types that serialise the responses, and the page from the document. So neither
//! can disagree with what the service sends.

mod description;
mod document;
mod events;
mod page;

use std::sync::Arc;

use api::origin::Origin;
use platform::aws::Missing;
use platform::service::Service;

pub use description::Description;
pub use document::openapi;

pub fn api(service: &Service<'_>) -> Result<Description, Missing> {
    Ok(Description::new(Origin::from_service(service), Arc::clone(&service.clock), Arc::clone(&service.meter)))
}
