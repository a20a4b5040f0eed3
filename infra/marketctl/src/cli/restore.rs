//! The arguments of `marketctl restore`.

use clap::Args;
use types::timestamp::Timestamp;

use super::table::TableArgument;

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

/// Parses a time to which DynamoDB can restore a table.
fn whole_second(text: &str) -> Result<Timestamp, String> {
    let at: Timestamp = text.parse().map_err(|error: types::timestamp::TimestampError| error.to_string())?;
    if at.millis().rem_euclid(1_000) == 0 { Ok(at) } else { Err("must be a whole second".to_owned()) }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Arguments, Command};
    use clap::Parser;

    fn parsed(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn a_restore_names_a_table_and_a_whole_second() {
        let line = "marketctl restore accounts --to 2026-11-20T10:00:00Z --dry-run";
        let Command::Restore(options) = parsed(line).unwrap().command else { panic!("another command") };
        assert_eq!((options.to.millis() % 1_000, options.dry_run, options.no_start), (0, true, false));
        for bad in ["accounts", "orders --to 2026-11-20T10:00:00Z", "accounts --to 2026-11-20T10:00:00.5Z"] {
            assert!(parsed(&format!("marketctl restore {bad}")).is_err(), "{bad}");
        }
    }
}
