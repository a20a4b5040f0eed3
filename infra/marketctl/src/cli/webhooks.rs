//! The `webhooks` commands.

use admin::webhooks::Recoverable;
use clap::{ArgGroup, Args, Subcommand};
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, UserId};
use common::timestamp::Timestamp;
use uuid::Uuid;
use webhooks::delivery::Status;

use super::values::{member, number};

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Add an endpoint; its secret is shown only once
    #[command(override_usage = "marketctl webhooks add --user <UUID>\n       --url <URL> --event <EVENT>")]
    Add(AddEndpoint),
    /// List the endpoints of a user, or of all users, with their states
    List {
        /// The owner's user id; the endpoints of all users, if this is not given
        #[arg(long, value_name = "UUID")]
        user: Option<UserId>,
    },
    /// Show an endpoint and its state: what waits for it, how it has responded, and whether it is about to be switched off
    ShowEndpoint {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
    },
    /// Change an endpoint's URL or events; its secrets stay, and so does whether it is on
    Update(UpdateEndpoint),
    /// Remove an endpoint and end its pending and held deliveries
    Remove {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
    },
    /// Switch an endpoint on: its events are sent from now on
    Enable {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
    },
    /// Switch an endpoint off: its events are held, and you can resend them later
    Disable {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
    },
    /// Create an endpoint's next secret; it is shown only once
    ///
    /// First the present secret signs `X-Service-Signature`, and both sign `webhook-signature`. After 24 hours, or
    /// --activate, the next one signs `X-Service-Signature`. Another 24 hours later, or with --expire-old, the old one
    /// ends. If you have lost the next secret before it is active, run this again: then the lost one signs nothing.
    RotateSecret {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
        /// Create no secret; let the next one sign `X-Service-Signature` now instead of after 24 hours
        #[arg(long)]
        activate: bool,
        /// Create no secret; end the old one now instead of 24 hours after the activation, and activate the next one
        /// before if that is not done
        #[arg(long)]
        expire_old: bool,
    },
    /// Send an endpoint a signed test event with sample data, in a single attempt
    Test {
        /// The endpoint's id, as `webhooks list` shows it
        id: EndpointId,
        /// The event to send, such as listing.sold; by default the first one that the endpoint selected
        #[arg(long, value_parser = member::<EventKind>(), hide_possible_values = true)]
        event: Option<EventKind>,
        /// Wait for the attempt, at most two minutes; exit code 1 unless the receiver acknowledged it
        #[arg(long)]
        wait: bool,
    },
    /// List the deliveries of an endpoint, of a user or of all, newest first; they are kept for 35 days
    #[command(
        override_usage = "marketctl webhooks deliveries [OPTIONS] <ENDPOINT_ID>\n       marketctl webhooks deliveries [OPTIONS] --user <UUID>\n       marketctl webhooks deliveries [OPTIONS] --all"
    )]
    Deliveries(ListDeliveries),
    /// Show a delivery with its attempts and its body
    Show {
        /// The delivery's id, as `webhooks deliveries` shows it
        id: DeliveryId,
    },
    /// Send a delivery again, whatever its status; or all of an endpoint that are held, failed, or far from their next attempt
    ///
    /// With --endpoint, the oldest come first. At most a thousand of them wait for their attempts at a time, ten of which
    /// are made at once. New events go on meanwhile. Test events are left out. Ends early if the endpoint is switched off
    /// or removed.
    ///
    /// If the command is interrupted, run it again. A delivery that it has sent is due at once or delivered, so it is no
    /// longer one of those, and is not sent twice.
    Resend(ResendOptions),
    /// Add a new key to the keyring and seal every endpoint's secrets with it
    ///
    /// Deliveries continue meanwhile. For a minute after a rotation, functions may use the keyring from before it. The
    /// next rotation waits for that. If the command is interrupted, run it again.
    RotateKeyring {
        /// Remove the older keys from the keyring afterwards, which takes a minute longer
        #[arg(long)]
        remove_old: bool,
    },
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("of").args(["id", "user", "all"]).required(true))]
pub(crate) struct ListDeliveries {
    /// The endpoint's id, as `webhooks list` shows it
    #[arg(value_name = "ENDPOINT_ID")]
    pub(crate) id: Option<EndpointId>,
    /// List the deliveries of all endpoints that this user has
    #[arg(long, value_name = "UUID")]
    pub(crate) user: Option<UserId>,
    /// List the deliveries of all endpoints that there are. A delivery fails after its last attempt, some 33 hours after the
    /// first: which endpoints fail now, `webhooks list` shows
    #[arg(long)]
    pub(crate) all: bool,
    /// List only deliveries with this status
    #[arg(long, value_parser = member::<Status>())]
    pub(crate) status: Option<Status>,
    /// List only deliveries of this event, such as listing.sold
    #[arg(long, value_parser = member::<EventKind>(), hide_possible_values = true)]
    pub(crate) event: Option<EventKind>,
    /// List only deliveries that were created at this time or later, such as 2026-11-20T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Timestamp>,
    /// List only deliveries that were created before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
    /// List only the deliveries about this id: of the marketplace's event, or of an order, a listing or another thing
    /// that the event names
    #[arg(long, value_name = "UUID")]
    pub(crate) about: Option<Uuid>,
    /// List at most this many deliveries: 100 if this is not given, or all with --json
    #[arg(long, value_name = "N", value_parser = number::<1, 1_000_000>, allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
    /// Go on until you press Ctrl-C: of the newest deliveries, as many as --limit says, list each when it is new or has
    /// changed; with --json, a document per line
    #[arg(long, conflicts_with = "all")]
    pub(crate) watch: bool,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "marketctl webhooks resend [OPTIONS] <DELIVERY_ID>\n       marketctl webhooks resend [OPTIONS] --endpoint <ID>"
)]
#[command(group = ArgGroup::new("which").args(["id", "endpoint"]).required(true))]
pub(crate) struct ResendOptions {
    /// The delivery's id, as `webhooks deliveries` shows it
    #[arg(value_name = "DELIVERY_ID")]
    pub(crate) id: Option<DeliveryId>,
    /// Send the deliveries of this endpoint again that are held, failed, or pending with more than five minutes to the
    /// next attempt
    #[arg(long, value_name = "ID")]
    pub(crate) endpoint: Option<EndpointId>,
    /// Only deliveries with this status: held, failed or pending, or several of them such as held,failed; all three, if
    /// this is not given
    #[arg(long, value_delimiter = ',', value_parser = member::<Recoverable>(), requires = "endpoint", conflicts_with = "id")]
    pub(crate) status: Vec<Recoverable>,
    /// Only deliveries that were created at this time or later, such as 2026-11-20T10:00:00Z
    #[arg(long, value_name = "TIME", requires = "endpoint", conflicts_with = "id")]
    pub(crate) since: Option<Timestamp>,
    /// Only deliveries that were created before this time
    #[arg(long, value_name = "TIME", requires = "endpoint", conflicts_with = "id")]
    pub(crate) until: Option<Timestamp>,
    /// Only count them; send nothing
    #[arg(long, requires = "endpoint", conflicts_with = "id")]
    pub(crate) dry_run: bool,
    /// Of one delivery, wait for the attempt, at most two minutes; exit code 1 unless the receiver acknowledged it
    #[arg(long, conflicts_with = "endpoint")]
    pub(crate) wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AddEndpoint {
    /// The owner's user id
    #[arg(long, value_name = "UUID")]
    pub(crate) user: UserId,
    /// Where deliveries are sent: an http or https URL with a public address
    #[arg(long)]
    pub(crate) url: String,
    /// An event to deliver; several with commas, or repeat it
    #[arg(long = "event", value_name = "EVENT", required = true, value_delimiter = ',', value_parser = member::<EventKind>())]
    pub(crate) events: Vec<EventKind>,
}

#[derive(Args, Debug)]
#[command(override_usage = "marketctl webhooks update <ID>\n       [--url <URL>] [--event <EVENT>]")]
#[command(group = ArgGroup::new("change").args(["url", "events"]).required(true).multiple(true))]
pub(crate) struct UpdateEndpoint {
    /// The endpoint's id, as `webhooks list` shows it
    pub(crate) id: EndpointId,
    /// Where deliveries are sent from now on
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// An event to deliver from now on, in place of those selected before; several with commas, or repeat it
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',', value_parser = member::<EventKind>())]
    pub(crate) events: Vec<EventKind>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command};
    use clap::Parser;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    #[test]
    fn lists_are_narrowed_by_every_option() {
        let line = format!("marketctl webhooks deliveries {ID} --status held --event listing.sold --limit 7");
        let line = format!("{line} --since 2026-11-20T10:00:00Z --until 2026-11-21T12:00:00+02:00");
        let Command::Webhooks(WebhookCommand::Deliveries(list)) =
            Arguments::parse_from(line.split_whitespace()).command
        else {
            panic!("another command")
        };
        let ListDeliveries { status, event, since, until, limit, .. } = list;
        assert_eq!((status, event), (Some(Status::Held), Some(EventKind::ListingSold)));
        assert_eq!((since < until, limit), (true, Some(7)));
        assert_eq!(until.map(|until| until.to_string()).as_deref(), Some("2026-11-21T10:00:00.000Z"));
    }

    #[test]
    fn the_statuses_of_deliveries_to_resend_are_a_list() {
        let line = format!("marketctl webhooks resend --endpoint {ID} --status held,failed --dry-run");
        let Command::Webhooks(WebhookCommand::Resend(options)) = Arguments::parse_from(line.split_whitespace()).command
        else {
            panic!("another command")
        };
        assert_eq!((options.id, options.endpoint, options.dry_run), (None, ID.parse().ok(), true));
        assert_eq!(options.status, [Recoverable::Held, Recoverable::Failed]);
    }
}
