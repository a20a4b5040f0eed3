//! The `keys` commands.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use admin::keys::{LimitChange, MAX_LIMIT};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgGroup, Args, Subcommand};
use common::ids::{KeyId, UserId};
use common::resources::MAX_KEYS;
use common::scope::{Scope, Tier};
use common::timestamp::Timestamp;

use super::values::{duration, member, number};
use crate::input::Source;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key; its text is shown only once
    #[command(override_usage = "marketctl keys create [OPTIONS]\n       --user <UUID> --scope <SCOPE>")]
    Create(CreateKey),
    /// List a user's keys, oldest first, including revoked ones; or those of all users, those with most requests today first
    List {
        /// The owner's user id; the keys of all users, if this is not given
        #[arg(long, value_name = "UUID")]
        user: Option<UserId>,
        /// Of all users' keys, list at most this many: 50 if this is not given, or all with --json
        #[arg(long, value_name = "N", value_parser = number::<1, 1_000_000>, allow_negative_numbers = true)]
        #[arg(conflicts_with = "user")]
        limit: Option<u32>,
    },
    /// Show a key, and its requests per day and scope
    Show {
        /// The key's id, as `keys list` shows it
        key_id: KeyId,
    },
    /// Tell which keys are in a leaked text, such as a log or a file, without printing the text
    #[command(override_usage = "marketctl keys identify <FILE|->...")]
    Identify {
        /// The files with the text; `-` is standard input
        #[arg(value_name = "FILE|-", value_parser = NoKey, num_args = 1.., default_value = "-")]
        texts: Vec<Source>,
    },
    /// Change a key's name, tier or limit; its next request is counted against the new limit
    #[command(
        override_usage = "marketctl keys update [OPTIONS] <KEY_ID>\n       --name <NAME> | --tier <TIER> | --limit <N|tier>"
    )]
    Update {
        /// The key's id, as `keys list` shows it
        key_id: KeyId,
        #[command(flatten)]
        changes: KeyChanges,
    },
    /// Revoke a key, or all keys of a user, for good: the next request is refused
    #[command(
        override_usage = "marketctl keys revoke [OPTIONS] <KEY_ID>\n       marketctl keys revoke [OPTIONS] --user <UUID>"
    )]
    #[command(group = ArgGroup::new("which").args(["key_id", "user"]).required(true))]
    Revoke {
        /// The key's id, as `keys list` shows it
        key_id: Option<KeyId>,
        /// All keys of the user with this id
        #[arg(long, value_name = "UUID")]
        user: Option<UserId>,
    },
    /// Replace a key: create one like it and revoke the old one, both or neither
    Rotate {
        /// The old key's id, as `keys list` shows it
        key_id: KeyId,
        /// How long the old key is still accepted, such as 90s, 15m, 24h or 7d: at most 7 days, and not beyond its own
        /// expiry
        #[arg(long, value_name = "LENGTH", default_value = "0s", value_parser = duration)]
        overlap: Duration,
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
    /// What the key may read; several with commas, or repeat it
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',', value_parser = member::<Scope>())]
    pub(crate) scopes: Vec<Scope>,
    /// When the key expires, such as 2027-01-01T00:00:00Z; never, if this is not given
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<Timestamp>,
    /// After how long the key expires, such as 12h or 30d
    #[arg(long, value_name = "LENGTH", value_parser = duration, conflicts_with = "expires_at")]
    pub(crate) expires_in: Option<Duration>,
    /// The most keys of the user that are accepted at a time, this one included
    #[arg(long, value_name = "N", default_value_t = MAX_KEYS, value_parser = number::<1, 1_000_000>)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) max_keys: u32,
    /// Allow a tier that is coming soon
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("change").args(["name", "tier", "limit"]).required(true).multiple(true))]
pub(crate) struct KeyChanges {
    /// A new name, 1 to 128 bytes
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Another plan; one that is coming soon needs --preview
    #[arg(long, value_parser = member::<Tier>())]
    pub(crate) tier: Option<Tier>,
    /// A limit of the key's own, in requests per minute and scope: 0 to 15000; it outlasts a change of the tier. Or
    /// `tier`, to drop it and follow the tier again
    #[arg(long, value_name = "N|tier", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) limit: Option<LimitChange>,
    /// Allow a tier that is coming soon
    #[arg(long)]
    pub(crate) preview: bool,
}

/// Takes the name of a file that is there, or `-`. Shells remember command lines, and other users see them. So everything
/// else is refused, and not repeated, because it may be a secret.
#[derive(Clone, Copy, Debug)]
struct NoKey;

impl TypedValueParser for NoKey {
    type Value = Source;

    fn parse_ref(&self, command: &clap::Command, _: Option<&Arg>, value: &OsStr) -> Result<Source, clap::Error> {
        if value == "-" || Path::new(value).is_file() {
            return Ok(Source::from(value.to_owned()));
        }
        let refusal = "that is no file. A key on a command line is not secret: give it on standard input, as in \
            `marketctl keys identify -`\n";
        Err(clap::Error::raw(ErrorKind::ValueValidation, refusal).with_cmd(command))
    }
}

/// Parses a key's own limit, or `tier`.
fn limit(text: &str) -> Result<LimitChange, String> {
    if text == "tier" {
        return Ok(LimitChange::FollowTier);
    }
    let own = number::<0, MAX_LIMIT>(text).map(LimitChange::Own);
    own.map_err(|reason| format!("{reason}, or `tier`"))
}
