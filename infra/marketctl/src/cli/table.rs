//! The tables of a stack, as arguments name them.

use clap::ValueEnum;
use platform::resources::Table;

/// A table of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableArgument {
    /// API keys
    Keys,
    /// Items, listings, marketplaces and quotes
    Market,
    /// Orders and balances
    Accounts,
    /// Webhook endpoints and deliveries
    Webhooks,
}

impl From<TableArgument> for Table {
    fn from(table: TableArgument) -> Self {
        match table {
            TableArgument::Keys => Self::Keys,
            TableArgument::Market => Self::Market,
            TableArgument::Accounts => Self::Accounts,
            TableArgument::Webhooks => Self::Webhooks,
        }
    }
}
