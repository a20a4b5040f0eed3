//! Texts that several parts of the document use.

/// The version of the API (specification 9.1.1).
pub(super) const VERSION: &str = "1.1.0";
/// The media type of every JSON body.
pub(crate) const JSON: &str = "application/json";
/// The name of the security scheme.
pub(super) const API_KEY: &str = "ApiKey";
