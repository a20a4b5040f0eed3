//! `repair`.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args, ValueEnum};
use common::resources::Table;

#[derive(Args, Debug)]
pub(crate) struct RepairOptions {
    /// Only say what there is to change; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The table to repair
    #[arg(long, value_enum, required_unless_present = "reset_version")]
    pub(crate) table: Option<TableArgument>,
    /// Its full name, in place of the name of the one that the service uses
    #[arg(long, requires = "table", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
    /// Also revoke what is revoked in this table of keys, such as the one that the service used before; again for
    /// another one. The stack's own table and the one in use are always looked at
    #[arg(long, value_name = "NAME", requires = "table", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) revoked_in: Vec<String>,
    /// Only set a version to 0, so that later messages apply again; KIND is item, listing, marketplace, order or
    /// balance, and the ID of a balance is its user's
    #[arg(long, value_names = ["KIND", "ID"], num_args = 2, action = ArgAction::Set)]
    #[arg(conflicts_with_all = ["dry_run", "table"])]
    pub(crate) reset_version: Vec<String>,
}

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
