//! Page.
pub(crate) fn render(_: &utoipa::openapi::OpenApi) -> String { String::new() }
