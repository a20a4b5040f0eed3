//! `repair` and `restore`.

use clap::{ArgAction, Args, ValueEnum};
use common::resources::Table;
use common::timestamp::Timestamp;

use super::values::whole_second;

#[derive(Args, Debug)]
pub(crate) struct RepairOptions {
    /// Only say what is not in line; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The tables were restored: make running instances forget what they remember, even if all is in line
    #[arg(long)]
    pub(crate) restored: bool,
    /// Only look at this table; at all four, if this is not given
    #[arg(long, value_enum)]
    pub(crate) table: Option<TableArgument>,
    /// Only set a version to 0, so that later messages apply again; KIND is item, listing, marketplace, order or
    /// balance, and the ID of a balance is its user's
    #[arg(long, value_names = ["KIND", "ID"], num_args = 2, action = ArgAction::Set)]
    #[arg(conflicts_with_all = ["dry_run", "restored", "table"])]
    pub(crate) reset_version: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreOptions {
    /// The table to restore
    #[arg(value_enum)]
    pub(crate) table: TableArgument,
    /// The moment before the damage, a whole second such as 2026-11-20T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = whole_second)]
    pub(crate) to: Timestamp,
    /// Only say what was found and which steps are left; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// At the end, leave stopped what was stopped; the same command without this starts it
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Open the API after a restore of keys: what was revoked since that moment is revoked again
    #[arg(long, conflicts_with = "no_start")]
    pub(crate) keys_revoked: bool,
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
