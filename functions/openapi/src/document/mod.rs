//! Builds the OpenAPI 3.1 document.

mod body;
mod complete;
mod constants;
mod errors;
pub(crate) mod guide;
mod headers;
mod inline;
mod links;
mod operation;
mod operations;
mod parameters;
pub(crate) mod schema_set;
mod schemas;
mod success;
mod webhooks;

pub(crate) use constants::JSON;
pub(crate) use headers::EVERY;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ComponentsBuilder, ContactBuilder, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
    PathItem, Paths, PathsBuilder, Server, ServerBuilder, Tag,
};

use constants::{API_KEY, VERSION};
use operation::Get;
use operations::tags;

/// The licence as an SPDX expression; also used as its name.
const LICENSE: &str = "MIT OR Apache-2.0";
/// Who answers questions about the API. It has no address, because each marketplace that runs the service has its own.
const CONTACT: &str = "The support of the marketplace";

/// Builds the whole document.
pub fn openapi() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Marketplace Public API")
        .version(VERSION)
        .description(Some(guide::markdown()))
        .contact(Some(ContactBuilder::new().name(Some(CONTACT)).build()))
        .license(Some(LicenseBuilder::new().name(LICENSE).identifier(Some(LICENSE)).build()));
    let operations = operations::all();
    let components = components(&operations);
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server()]))
        .tags(Some(all_tags()))
        .paths(paths(operations))
        .webhooks(Some(webhooks::all()))
        .components(Some(components))
        .build()
}

/// Describes the server that serves the document, whose API is for clients outside the marketplace.
fn server() -> Server {
    ServerBuilder::new().url("/").extensions(Some(Extensions::from_iter([("x-internal", false)]))).build()
}

fn paths(operations: impl IntoIterator<Item = Get>) -> Paths {
    let item = |get: Get| (get.route.path, PathItem::new(HttpMethod::Get, links::add(get.operation())));
    let items = operations.into_iter().map(item);
    items.fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item)).build()
}

fn all_tags() -> [Tag; 6] {
    [
        (tags::KEY, "The API key of the request."),
        (tags::CATALOG, "Items, and their prices on other marketplaces."),
        (tags::LISTINGS, "Active listings."),
        (tags::ACCOUNT, "Your own orders and balance."),
        (tags::DESCRIPTION, "This description."),
        (webhooks::TAG, "Events that the service sends to your registered endpoints."),
    ]
    .map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build())
}

fn components(operations: &[Get]) -> Components {
    let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("sk_…").description(Some(
        "An API key. The names that an operation lists for this scheme are the scopes that the key must carry.",
    ));
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(schemas::all(operations.iter().map(|get| &get.body)))
        .responses_from_iter(errors::shared())
        .security_scheme(API_KEY, SecurityScheme::Http(key.build()));
    for (name, header) in headers::all() {
        components = components.header(name, header);
    }
    for (name, parameter) in parameters::shared().into_iter().chain(webhooks::shared()) {
        components = components.parameter(name, parameter);
    }
    components.build()
}

#[cfg(test)]
mod tests;
