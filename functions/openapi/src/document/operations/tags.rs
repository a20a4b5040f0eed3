//! The tags that group the operations.

pub(in crate::document) const KEY: &str = "Key";
pub(in crate::document) const CATALOG: &str = "Catalog";
pub(in crate::document) const LISTINGS: &str = "Listings";
pub(in crate::document) const ACCOUNT: &str = "Account";
pub(in crate::document) const DESCRIPTION: &str = "Description";
