//! The command line. All arguments are parsed here, and wrong usage ends with exit code 2.

mod webhooks;

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Parser, Subcommand, ValueEnum};
use common::ids::{KeyId, UserId};
use common::resources::MAX_KEYS;
use common::resources::{Resources, Table};
use common::scope::{Scope, Tier};
use common::timestamp::{Timestamp, TimestampError};

pub(crate) use webhooks::{AddEndpoint, ListDeliveries, ResendOptions, UpdateEndpoint, WebhookCommand};

use crate::input::Source;
use webhooks::member;

/// Operates a stack of the marketplace API: manages keys and webhooks, fills the feed, imports data, checks, repairs
/// and restores.
///
/// Region, credentials and endpoint are found as every AWS tool finds them: in environment variables
/// and in the files that `aws configure` writes.
///
/// Each change of a key, an endpoint or a delivery also writes a line of JSON to standard error: who changed what.
///
/// Exit codes: 0 done, 1 failed or refused (all of it or a part), 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "marketctl", version, verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The stack to work on
    #[arg(long, global = true, default_value = Resources::DEFAULT_STACK, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stack: String,
    /// Print the result as one JSON document; errors go to standard error, also as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, list, show, change, revoke and rotate API keys, and tell whose a leaked key is
    #[command(subcommand)]
    Keys(KeyCommand),
    /// Manage webhook endpoints; show and resend their deliveries
    #[command(subcommand)]
    Webhooks(WebhookCommand),
    /// Send messages to the feed
    #[command(subcommand)]
    Feed(FeedCommand),
    /// Write messages straight to the tables, in bulk; it is safe to repeat an import
    Import {
        /// One JSON message per line; `-` is standard input
        #[arg(value_name = "FILE|-")]
        file: Source,
    },
    /// Check that every table, queue, bucket and secret exists and can be reached
    Check,
    /// Bring tables back in line after a restore, and say what was wrong; it is safe to repeat a repair
    ///
    /// Stop what writes to the tables first: ingest, compact, webhook, sweep and every import. The API may go on. See
    /// docs/operations.md.
    Repair(RepairOptions),
    /// Restore a table to a moment of the last 35 days, under its own name; if it was interrupted, run it again
    ///
    /// Stops what writes to the table, restores and repairs a copy, puts it in the table's place, and starts the writers
    /// again. See docs/operations.md.
    ///
    /// Needs these permissions beside those of a repair. DynamoDB: `RestoreTableToPointInTime`,
    /// `RestoreTableFromBackup` and all that it asks for, `CreateBackup`, `DescribeBackup`, `ListBackups`,
    /// `DeleteTable`, `UpdateTable`, and to describe and set continuous backups, time to live and tags. Lambda:
    /// `GetFunctionConfiguration`, to list and update event source mappings, and to get, put and delete a function's
    /// concurrency. EventBridge: `ListRuleNamesByTarget`, `DescribeRule`, `DisableRule` and `EnableRule`.
    Restore(RestoreOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key; its text is shown only once
    Create(CreateKey),
    /// List a user's keys, oldest first, including revoked ones
    List {
        /// The owner's user id
        #[arg(long, value_name = "UUID")]
        user: UserId,
    },
    /// Show a key, and its requests per day and scope
    Show {
        /// The key's id, as `keys list` shows it
        key_id: KeyId,
    },
    /// Tell which key a leaked text is, without printing the text
    #[command(override_usage = "marketctl keys identify -")]
    Identify {
        /// `-`: the text is read from standard input
        #[arg(value_name = "-", value_parser = OnlyStandardInput, num_args = 1..)]
        text: Source,
    },
    /// Change a key's name, tier or limit; its next request is counted against the new limit
    Update {
        /// The key's id, as `keys list` shows it
        key_id: KeyId,
        #[command(flatten)]
        changes: KeyChanges,
    },
    /// Revoke a key, or all keys of a user, for good: the next request is refused
    Revoke {
        /// The key's id, as `keys list` shows it
        #[arg(required_unless_present = "user")]
        key_id: Option<KeyId>,
        /// All keys of the user with this id
        #[arg(long, value_name = "UUID", conflicts_with = "key_id")]
        user: Option<UserId>,
    },
    /// Replace a key: create one like it and revoke the old one, both or neither
    Rotate {
        /// The old key's id, as `keys list` shows it
        key_id: KeyId,
        /// How long the old key is still accepted, such as 90s, 15m, 24h or 7d: at most 7 days, and not beyond its own
        /// expiry
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
        overlap: Duration,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedCommand {
    /// Send messages to the feed queue, unchecked; invalid ones end up in the dead-letter queue
    Send {
        /// One message per line; `-` is standard input
        #[arg(value_name = "FILE|-")]
        file: Source,
    },
}

#[derive(Args, Debug)]
pub(crate) struct CreateKey {
    /// The owner's user id
    #[arg(long, value_name = "UUID")]
    pub(crate) user: UserId,
    /// A name for the key, 1 to 128 bytes
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The plan; one that is coming soon needs --preview
    #[arg(long, default_value = Tier::Free.as_str(), value_parser = member::<Tier>())]
    pub(crate) tier: Tier,
    /// What the key may read; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = member::<Scope>())]
    pub(crate) scopes: Vec<Scope>,
    /// When the key expires, such as 2027-01-01T00:00:00Z; never, if this is not given
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<Timestamp>,
    /// The most keys of the user that are accepted at a time, this one included
    #[arg(long, value_name = "N", default_value_t = MAX_KEYS)]
    pub(crate) max_keys: u32,
    /// Allow a tier that is coming soon
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KeyChanges {
    /// A new name, 1 to 128 bytes
    #[arg(long, required_unless_present_any = ["tier", "limit", "follow_tier"])]
    pub(crate) name: Option<String>,
    /// Another plan; one that is coming soon needs --preview
    #[arg(long, value_parser = member::<Tier>())]
    pub(crate) tier: Option<Tier>,
    /// A limit of the key's own, in requests per minute and scope: 0 to 60000; it outlasts a change of the tier
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Drop the key's own limit and follow the tier again
    #[arg(long, conflicts_with = "limit")]
    pub(crate) follow_tier: bool,
    /// Allow a tier that is coming soon
    #[arg(long)]
    pub(crate) preview: bool,
}

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
    let at: Timestamp = text.parse().map_err(|error: TimestampError| error.to_string())?;
    if at.millis().rem_euclid(1_000) == 0 { Ok(at) } else { Err("must be a whole second".to_owned()) }
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

/// Takes `-`, which is standard input. Shells remember command lines, and other users see them. So everything else is
/// refused, and not repeated, because it may be a secret.
#[derive(Clone, Copy, Debug)]
struct OnlyStandardInput;

impl TypedValueParser for OnlyStandardInput {
    type Value = Source;

    fn parse_ref(&self, command: &clap::Command, _: Option<&Arg>, value: &OsStr) -> Result<Source, clap::Error> {
        if value == "-" {
            return Ok(Source::Stdin);
        }
        let refusal =
            "give the text on standard input and `-` as the only argument; a key on a command line is not secret\n";
        Err(clap::Error::raw(ErrorKind::ValueValidation, refusal).with_cmd(command))
    }
}

/// Parses a whole number with its unit, such as `90s`, `15m`, `24h` or `7d`.
fn duration(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (unit_at, unit) = text.char_indices().next_back()?;
        let unit_seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return None,
        };
        let number: u32 = text[..unit_at].parse().ok()?;
        Some(Duration::from_secs(u64::from(number) * unit_seconds))
    };
    parse().ok_or_else(|| "must be a whole number and a unit: s, m, h or d, such as 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    /// Parses a command without the program's name. `ID` stands for a UUID.
    fn parsed(line: &str) -> Result<Command, clap::Error> {
        let line = format!("marketctl {}", line.replace("ID", ID));
        Arguments::try_parse_from(line.split_whitespace()).map(|arguments| arguments.command)
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn scopes_repeat_and_the_common_options_stand_anywhere() {
        let line = format!("marketctl keys create --user {ID} --scope orders:read --scope wallet:read --json");
        let arguments = Arguments::parse_from(line.split_whitespace());
        assert!(arguments.json);
        assert_eq!(arguments.stack, "marketplace");
        let Command::Keys(KeyCommand::Create(create)) = arguments.command else { panic!("another command") };
        assert_eq!(create.scopes, [Scope::OrdersRead, Scope::WalletRead]);
        assert_eq!(create.tier, Tier::Free);
    }

    #[test]
    fn what_can_be_left_out_may_be_left_out() {
        for line in [
            "webhooks update ID --url https://a.example",
            "webhooks update ID --event listing.sold --event order.completed",
            "webhooks rotate-secret ID",
            "webhooks test ID",
            "webhooks deliveries ID",
            "webhooks resend ID",
            "webhooks enable ID",
            "webhooks repair",
            "webhooks rotate-keyring",
            "repair",
            "repair --reset-version item a",
            "repair --table keys --name a --revoked-in b",
            "repair --dry-run --restored --table market --name a",
            "repair --table accounts",
            "repair --table webhooks",
            "restore accounts --to 2026-11-20T10:00:00Z --dry-run",
        ] {
            assert!(parsed(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_does_not_belong_together_or_is_missing_is_wrong_usage() {
        for (kind, lines) in [
            (
                ErrorKind::MissingRequiredArgument,
                &[
                    "keys create --user ID",
                    "keys identify",
                    "webhooks add --user ID --url https://a.example",
                    "webhooks add --user ID --event listing.sold",
                    "webhooks list",
                    "webhooks enable",
                    "webhooks update ID",
                    "webhooks resend",
                    "webhooks resend --status held",
                    "webhooks resend --since 2026-11-20T10:00:00Z",
                    "webhooks resend --until 2026-11-20T10:00:00Z",
                    "webhooks resend --dry-run",
                    "repair --name a",
                    "repair --table keys --revoked-in b",
                    "restore accounts",
                ][..],
            ),
            (
                ErrorKind::ArgumentConflict,
                &[
                    "webhooks resend ID --endpoint ID",
                    "webhooks resend ID --status held",
                    "webhooks resend ID --since 2026-11-20T10:00:00Z",
                    "webhooks resend ID --until 2026-11-20T10:00:00Z",
                    "webhooks resend ID --dry-run",
                    "repair --dry-run --reset-version item a",
                    "restore keys --to 2026-11-20T10:00:00Z --no-start --keys-revoked",
                ],
            ),
            (ErrorKind::WrongNumberOfValues, &["repair --reset-version item"]),
        ] {
            for line in lines {
                assert_eq!(parsed(line).unwrap_err().kind(), kind, "{line}");
            }
        }
    }

    #[test]
    fn what_is_not_of_its_form_is_wrong_usage() {
        for line in [
            "keys list --user nobody",
            "keys revoke 42",
            "keys rotate ID --overlap soon",
            "keys create --user ID --scope catalog:write",
            "keys create --user ID --scope catalog:read --tier gold",
            "keys create --user ID --scope catalog:read --expires-at soon",
            "webhooks add --user ID --url https://a.example --event all",
            "webhooks add --user ID --url https://a.example --event Listing.Sold",
            "webhooks add --user me --url https://a.example --event listing.sold",
            "webhooks list --user me",
            "webhooks remove 42",
            "webhooks show-endpoint 42",
            "webhooks test ID --event listing",
            "webhooks deliveries ID --status gone",
            "webhooks deliveries ID --limit 0",
            "webhooks deliveries ID --event all",
            "webhooks deliveries ID --since yesterday",
            "webhooks show 42",
            "webhooks resend 42",
            "webhooks resend --endpoint 42",
            "webhooks resend --endpoint ID --status pending",
            "webhooks resend --endpoint ID --status held,delivered",
            "webhooks resend --endpoint ID --since yesterday",
            "restore accounts --to 2026-11-20T10:00:00.5Z",
        ] {
            let kind = parsed(line).unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue), "{line}: {kind}");
        }
        let unknown_table = parsed("restore orders --to 2026-11-20T10:00:00Z").unwrap_err();
        assert_eq!(unknown_table.kind(), ErrorKind::InvalidValue);
    }

    #[test]
    fn a_key_on_the_command_line_is_refused_and_not_repeated() {
        let accepted = parsed("keys identify - --json").unwrap();
        assert!(matches!(accepted, Command::Keys(KeyCommand::Identify { .. })));
        for line in ["identify sk_secret", "identify - sk_secret", "identify sk_secret --json", "identify -- sk_secret"]
        {
            let refused = parsed(&format!("keys {line}")).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{line}");
            assert!(!refused.to_string().contains("sk_"), "{refused}");
        }
    }

    #[test]
    fn a_length_of_time_is_a_whole_number_and_a_unit() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for malformed in ["", "7", "d", "1.5h", "-1h", "7 d", "7w", "1h30m", "4294967296s", "7é"] {
            assert!(duration(malformed).is_err(), "{malformed}");
        }
    }
}
