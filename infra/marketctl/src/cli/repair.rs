//! The arguments of `marketctl repair`.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args};

use super::table::TableArgument;

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
    /// The table's name, if it does not have the stack's yet
    #[arg(long, requires = "table", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
    /// Also revoke the keys that are revoked or replaced in this table, the damaged one; only with --table keys
    #[arg(long, value_name = "TABLE", requires = "name", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) revoked_in: Option<String>,
    /// Only set a version to 0, so that later messages apply again; KIND is item, listing, marketplace, order or
    /// balance, and the ID of a balance is its user's
    #[arg(long, value_names = ["KIND", "ID"], num_args = 2, action = ArgAction::Set)]
    #[arg(conflicts_with_all = ["dry_run", "restored", "table"])]
    pub(crate) reset_version: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::cli::{Arguments, Command};
    use clap::Parser;

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn a_version_is_named_by_kind_and_id_and_stands_alone() {
        let Command::Repair(options) = parsed("marketctl repair --reset-version item a").unwrap().command else {
            panic!("another command")
        };
        assert_eq!(options.reset_version, ["item", "a"]);
        assert!(parsed("marketctl repair --reset-version item").is_err());
        assert!(parsed("marketctl repair --dry-run --reset-version item a").is_err());
        assert!(parsed("marketctl repair --name a").is_err());
        assert!(parsed("marketctl repair --table keys --revoked-in b").is_err());
        assert!(parsed("marketctl repair --table keys --name a --revoked-in b").is_ok());
        for table in ["market", "accounts", "keys", "webhooks"] {
            assert!(parsed(&format!("marketctl repair --dry-run --restored --table {table} --name a")).is_ok());
        }
    }
}
