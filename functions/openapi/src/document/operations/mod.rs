//! The operations, in the order of specification 4.1.1, and the tags that group them.

mod account;
mod catalog;
mod itself;
mod key;
mod listings;
pub(super) mod tags;

use super::operation::Get;

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
