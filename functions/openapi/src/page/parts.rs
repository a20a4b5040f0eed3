//! The parts of the OpenAPI document that the page shows one by one.

use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

pub(super) fn operations(openapi: &OpenApi) -> impl Iterator<Item = (&str, &Operation)> {
    openapi.paths.paths.iter().filter_map(|(path, item)| Some((path.as_str(), item.get.as_ref()?)))
}

pub(super) fn webhooks(openapi: &OpenApi) -> impl Iterator<Item = (&str, &Operation)> {
    let items = openapi.webhooks.iter().flat_map(|webhooks| &webhooks.paths);
    items.filter_map(|(name, item)| Some((name.as_str(), item.post.as_ref()?)))
}
