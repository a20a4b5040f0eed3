//! The command line. All arguments are parsed here, and wrong usage ends with exit code 2.

mod duration;
mod repair;
mod restore;
mod standard_input;
mod table;
mod webhooks;

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use platform::resources::Resources;
use types::ids::{KeyId, UserId};
use types::scope::{Scope, Tier};
use types::timestamp::Timestamp;

pub(crate) use repair::RepairOptions;
pub(crate) use restore::RestoreOptions;
pub(crate) use webhooks::{AddEndpoint, ListDeliveries, ResendOptions, UpdateEndpoint, WebhookCommand};

use crate::input::Source;
use duration::parse_duration;
use standard_input::OnlyStandardInput;

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
    /// Revoke a key for good: its next request is refused
    Revoke {
        /// The key's id, as `keys list` shows it
        key_id: KeyId,
    },
    /// Replace a key: create one like it and revoke the old one, both or neither
    Rotate {
        /// The old key's id, as `keys list` shows it
        key_id: KeyId,
        /// How long the old key is still accepted, such as 90s, 15m, 24h or 7d: at most 7 days, and not beyond its own
        /// expiry
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
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
    /// The plan: free, pro or business; one that is coming soon needs --preview
    #[arg(long, default_value = Tier::Free.as_str())]
    pub(crate) tier: Tier,
    /// What the key may read: catalog:read, listings:read, orders:read or wallet:read; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    pub(crate) scopes: Vec<Scope>,
    /// When the key expires, such as 2027-01-01T00:00:00Z; never, if this is not given
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<Timestamp>,
    /// Allow a tier that is coming soon
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KeyChanges {
    /// A new name, 1 to 128 bytes
    #[arg(long, required_unless_present_any = ["tier", "limit", "follow_tier"])]
    pub(crate) name: Option<String>,
    /// Another plan: free, pro or business; one that is coming soon needs --preview
    #[arg(long)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    const USER: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn refused(line: &str) -> ErrorKind {
        Arguments::try_parse_from(line.split_whitespace()).unwrap_err().kind()
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    /// Returns the help of an argument.
    fn help<A: Args>(name: &str) -> String {
        let command = A::augment_args(clap::Command::new("test"));
        let argument = command.get_arguments().find(|argument| argument.get_id() == name).unwrap();
        argument.get_help().unwrap().to_string()
    }

    #[test]
    fn the_help_names_every_scope_and_every_tier() {
        let scopes = help::<CreateKey>("scopes");
        assert!(Scope::ALL.iter().all(|scope| scopes.contains(scope.as_str())), "{scopes}");
        for tiers in [help::<CreateKey>("tier"), help::<KeyChanges>("tier")] {
            assert!(Tier::ALL.iter().all(|tier| tiers.contains(tier.as_str())), "{tiers}");
        }
    }

    #[test]
    fn scopes_repeat_and_the_common_options_stand_anywhere() {
        let line = format!("marketctl keys create --user {USER} --scope orders:read --scope wallet:read --json");
        let arguments = Arguments::parse_from(line.split_whitespace());
        assert!(arguments.json);
        assert_eq!(arguments.stack, "marketplace");
        let Command::Keys(KeyCommand::Create(create)) = arguments.command else { panic!("another command") };
        assert_eq!(create.scopes, [Scope::OrdersRead, Scope::WalletRead]);
        assert_eq!(create.tier, Tier::Free);
    }

    #[test]
    fn what_is_not_of_its_form_is_wrong_usage() {
        assert_eq!(refused("marketctl keys list --user nobody"), ErrorKind::ValueValidation);
        assert_eq!(refused("marketctl keys revoke 42"), ErrorKind::ValueValidation);
        assert_eq!(refused(&format!("marketctl keys rotate {USER} --overlap soon")), ErrorKind::ValueValidation);
        for bad in
            ["--scope catalog:write", "--scope catalog:read --tier gold", "--scope catalog:read --expires-at soon"]
        {
            assert_eq!(refused(&format!("marketctl keys create --user {USER} {bad}")), ErrorKind::ValueValidation);
        }
        assert_eq!(refused(&format!("marketctl keys create --user {USER}")), ErrorKind::MissingRequiredArgument);
    }
}
