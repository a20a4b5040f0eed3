//! The command line. All arguments are parsed here, and wrong usage ends with exit code 2.

mod dead_letters;
mod keys;
mod tables;
mod usage;
mod values;
mod webhooks;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use common::resources::Resources;

pub(crate) use dead_letters::{DeadLetterCommand, LetterFilter, LetterQueue, ListLetters, ResendLetters, WhichLetters};
pub(crate) use keys::{CreateKey, KeyChanges, KeyCommand};
pub(crate) use tables::RepairOptions;
pub(crate) use usage::{complete, parse, write_manual};
pub(crate) use values::region as parse_region;
pub(crate) use webhooks::{AddEndpoint, ListDeliveries, ResendOptions, UpdateEndpoint, WebhookCommand};

use crate::input::Source;

/// Operates a stack of the marketplace API: manages keys and webhooks, fills the feed, imports data, checks and
/// repairs.
///
/// Region, credentials and endpoint are found as every AWS tool finds them: in environment variables and in the files
/// that `aws configure` writes. For a stack on your machine, paste the `export` lines that it prints.
///
/// Every command asks the deployed service which tables it uses. This needs the permission
/// `lambda:GetFunctionConfiguration` on the function `CodeDeployHook_<stack>-pretraffic`.
///
/// Each change of a key, an endpoint, a delivery or a dead letter also writes a line of JSON to standard error: who
/// changed what.
///
/// Exit codes: 0 done, 1 failed or refused (all of it or a part), 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "marketctl", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the result as one JSON document; errors go to standard error, also as JSON
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) json: bool,
    /// Print only results and errors: no progress, no lines about changes
    #[arg(long, short, global = true, help_heading = COMMON)]
    pub(crate) quiet: bool,
    /// Ask no question before what cannot be undone; without a terminal, `keys revoke --user`, `webhooks remove`,
    /// `rotate-secret --expire-old` and `dead-letters delete` need this
    #[arg(long, short, global = true, help_heading = COMMON)]
    pub(crate) yes: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The heading of the options that all commands have.
const COMMON: &str = "Common options";

/// The stack to work on, and how AWS is reached.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The stack to work on
    #[arg(long, global = true, env = "MARKETCTL_STACK", default_value = Resources::DEFAULT_STACK, help_heading = COMMON)]
    #[arg(value_parser = values::stack)]
    pub(crate) stack: String,
    /// The stack's region, in place of `AWS_REGION` and the profile's
    #[arg(long, global = true, help_heading = COMMON, value_parser = values::region)]
    pub(crate) region: Option<String>,
    /// The profile with the credentials, in place of `AWS_PROFILE`
    #[arg(long, global = true, help_heading = COMMON, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) profile: Option<String>,
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
    /// List, show, send back and delete the messages that ended in a dead-letter queue
    ///
    /// Needs these permissions on the queues `feed-dead` and `webhooks-dead`: `sqs:GetQueueUrl`,
    /// `sqs:GetQueueAttributes`, `sqs:ReceiveMessage`, `sqs:ChangeMessageVisibility` and `sqs:DeleteMessage`. To send a
    /// message back, also `sqs:GetQueueUrl` and `sqs:SendMessage` on the queues `feed` and `webhooks-*`.
    #[command(subcommand)]
    DeadLetters(DeadLetterCommand),
    /// Write messages straight to the tables, in bulk; it is safe to repeat an import
    Import(ImportOptions),
    /// Check that every table, queue, bucket and secret exists and can be reached
    Check,
    /// Bring a restored table in line, before the service uses it; it is safe to repeat a repair
    ///
    /// Nobody may write to a table of the market or of accounts meanwhile. Those of keys and webhooks may be in use: a
    /// repair of webhooks also finds pending deliveries for which nothing calls any more, because a queue was purged. See
    /// docs/operations.md.
    ///
    /// Needs these permissions on the table: to read, write and describe it, `dynamodb:UpdateTable`, and to describe and
    /// set continuous backups, time to live and tags. On the stack's own table: `dynamodb:DescribeTable`,
    /// `dynamodb:ListTagsOfResource`, and `dynamodb:Scan` for keys. For the market also to read and write the bucket.
    Repair(RepairOptions),
    /// Print a script that completes the commands and options of `marketctl` in a shell
    ///
    /// For bash: marketctl completions bash > ~/.local/share/bash-completion/completions/marketctl
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands into a directory
    Man {
        /// The directory, such as ~/.local/share/man/man1
        directory: PathBuf,
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
#[command(after_help = "A line:\n{\"type\":\"item\",\"id\":\"a\",\"kind\":\"key\",\"name\":\"A\",\"version\":1}\n\n\
        docs/feed.md has every type and its fields. --dry-run names those that a line lacks.")]
pub(crate) struct ImportOptions {
    /// One JSON message per line; `-` is standard input
    #[arg(value_name = "FILE|-")]
    pub(crate) file: Source,
    /// Only check the lines; write nothing. Needs no stack
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the refused lines to this file as they are, to correct and import them
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use common::scope::{Scope, Tier};

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
    fn scopes_are_a_list_or_repeated_and_the_common_options_stand_anywhere() {
        let line =
            format!("marketctl keys create --user {ID} --scope orders:read,wallet:read --scope orders:read --json");
        let arguments = Arguments::parse_from(line.split_whitespace());
        assert!(arguments.json);
        assert_eq!(arguments.target.stack, "marketplace");
        let Command::Keys(KeyCommand::Create(create)) = arguments.command else { panic!("another command") };
        assert_eq!(create.scopes, [Scope::OrdersRead, Scope::WalletRead, Scope::OrdersRead]);
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
            "webhooks rotate-keyring",
            "repair --reset-version item a",
            "repair --dry-run --table market",
            "repair --table keys --name marketplace-keys-2",
            "keys update ID --limit tier",
            "keys create --user ID --scope catalog:read,orders:read --expires-in 30d",
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
                    "webhooks add --user ID --url https://a.example",
                    "webhooks add --user ID --event listing.sold",
                    "webhooks enable",
                    "webhooks update ID",
                    "webhooks resend",
                    "webhooks resend --status held",
                    "webhooks resend --since 2026-11-20T10:00:00Z",
                    "webhooks resend --until 2026-11-20T10:00:00Z",
                    "webhooks resend --dry-run",
                    "repair",
                    "repair --name marketplace-keys-2",
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
                ],
            ),
            (ErrorKind::WrongNumberOfValues, &["repair --reset-version item"]),
        ] {
            for line in lines {
                assert_eq!(parsed(line).unwrap_err().kind(), kind, "{line}");
            }
        }
    }
}
