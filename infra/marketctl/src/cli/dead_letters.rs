//! The `dead-letters` commands.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use common::ids::MessageId;
use common::resources::Queue;
use serde::Serialize;

use super::values::number;
use crate::input::Source;

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List dead letters, oldest first, and count them by reason
    ///
    /// A letter that another command or person is looking at is hidden for a few minutes. The list says how many are.
    List(ListLetters),
    /// Show a dead letter: why it is here, and the message itself
    Show {
        /// The letter's id, as `dead-letters list` shows it
        id: MessageId,
        /// Look only in this queue; in both, if this is not given
        #[arg(long, value_enum)]
        queue: Option<LetterQueue>,
        /// Print only the message, so that you can mend it in a file
        #[arg(long)]
        body: bool,
    },
    /// Send dead letters back to where they came from, and delete them here
    ///
    /// Each is checked first. One that would only be refused again is left. To mend it:
    ///
    /// $ marketctl dead-letters show ID --body >message.json
    ///
    /// $ marketctl dead-letters resend ID --file message.json
    ///
    /// A letter is deleted once its message is sent. If the command is interrupted, run it again: a message that is sent
    /// twice is applied once, and a webhook is still delivered under the same id.
    Resend(ResendLetters),
    /// Delete dead letters for good
    Delete(WhichLetters),
}

#[derive(Args, Debug)]
pub(crate) struct ListLetters {
    /// Look only in this queue; in both, if this is not given
    #[arg(long, value_enum)]
    pub(crate) queue: Option<LetterQueue>,
    #[command(flatten)]
    pub(crate) filter: LetterFilter,
    /// List at most this many letters; the counts are of all
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = number::<1, 1_000_000>)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) limit: u32,
}

#[derive(Args, Debug)]
pub(crate) struct ResendLetters {
    #[command(flatten)]
    pub(crate) which: WhichLetters,
    /// Send this in place of the message: one JSON object; `-` is standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "all")]
    pub(crate) file: Option<Source>,
}

/// Dead letters to act on: those that are named, or all of a queue that fit a filter.
#[derive(Args, Debug)]
pub(crate) struct WhichLetters {
    /// The letters' ids, as `dead-letters list` shows them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with_all = ["all", "reason", "entity"])]
    pub(crate) ids: Vec<MessageId>,
    /// All letters of the queue that fit --reason and --entity
    #[arg(long, requires = "queue")]
    pub(crate) all: bool,
    /// The queue that they are in; needed only with --all
    #[arg(long, value_enum)]
    pub(crate) queue: Option<LetterQueue>,
    #[command(flatten)]
    pub(crate) filter: LetterFilter,
}

#[derive(Args, Debug)]
pub(crate) struct LetterFilter {
    /// Only letters whose field and reason contain this text
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
    /// Only letters about the item, order, delivery or other thing with this id
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) entity: Option<String>,
}

/// A dead-letter queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LetterQueue {
    /// Messages of the feed that were not applied
    Feed,
    /// Messages that call for deliveries of webhooks
    Webhooks,
}

impl LetterQueue {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Webhooks => "webhooks",
        }
    }

    pub(crate) const fn queue(self) -> Queue {
        match self {
            Self::Feed => Queue::FeedDead,
            Self::Webhooks => Queue::WebhooksDead,
        }
    }
}
