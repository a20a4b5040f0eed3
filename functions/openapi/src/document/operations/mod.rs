//! The operations, in the order of the specification's section 4.

mod account;
mod catalog;
mod itself;
mod key;
mod listings;

use super::operation::Get;

/// What a reader looks for together.
pub(super) const KEY: &str = "Key";
/// See [`KEY`].
pub(super) const CATALOG: &str = "Catalog";
/// See [`KEY`].
pub(super) const LISTINGS: &str = "Listings";
/// See [`KEY`].
pub(super) const ACCOUNT: &str = "Account";
/// See [`KEY`].
pub(super) const DESCRIPTION: &str = "Description";

/// Every operation.
pub(super) fn all() -> [Get; 9] {
    [
        key::me(),
        catalog::catalog(),
        catalog::item(),
        catalog::prices(),
        catalog::marketplaces(),
        listings::listings(),
        account::orders(),
        account::balance(),
        itself::description(),
    ]
}
