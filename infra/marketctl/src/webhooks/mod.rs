//! The `webhooks` commands.

mod keyring;
mod outcome;
mod recovery;
mod repair;
mod show;

use std::num::NonZeroUsize;

use admin::ErrorCode;
use admin::audit::Subject;
use admin::webhooks::document::{
    DeliveryDocument, DeliveryRow, EndpointDocument, EndpointWithHealth, EndpointWithSecret, RemovedEndpoint,
    SentDelivery,
};
use admin::webhooks::{EndpointUpdate, NewEndpoint, Recoverable, Selection, WantedDeliveries, WebhookAdmin};
use common::ids::DeliveryId;
use common::rows::Rows;
use terminal::Output;
use webhooks::endpoint::Endpoints;

use crate::audit::{Asked, Audit};
use crate::cli::{AddEndpoint, ListDeliveries, ResendOptions, UpdateEndpoint, WebhookCommand};
use crate::failure::{CommandFailure, none_left_out};
use crate::session::Session;

/// What to do if the URL is refused because it leads to this machine.
const LOOPBACK_HINT: &str = "Nothing was changed. To allow endpoints on this machine, start the stack with \
    `cargo run --release -- --allow-loopback-webhooks`, paste the `export` lines that it prints, and try again.";

/// How many deliveries are read for a page of a list.
const PAGE: usize = 1_000;

pub(crate) async fn run(command: WebhookCommand, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let session = Session::open(stack).await?;
    let admin = session.webhooks().await?;
    let is_refused_as_local = new_url(&command).is_some_and(|url| session.refuses_as_local(url));
    let mut audit = Box::pin(Audit::begin(stack, asked(&command))).await?;
    let outcome = Box::pin(perform(&admin, command, output, &mut audit)).await;
    audit.end(&outcome);
    outcome.map_err(|failure| match failure.code() {
        Some(ErrorCode::Invalid) if is_refused_as_local => failure.with_hint(LOOPBACK_HINT),
        _ => failure,
    })
}

/// Returns the URL that an endpoint is to have.
fn new_url(command: &WebhookCommand) -> Option<&str> {
    match command {
        WebhookCommand::Add(add) => Some(&add.url),
        WebhookCommand::Update(update) => update.url.as_deref(),
        _ => None,
    }
}

/// Returns the change that a command asks for.
fn asked(command: &WebhookCommand) -> Option<Asked> {
    match command {
        WebhookCommand::Add(add) => Some(Asked::of_user("endpoints.add", add.user)),
        WebhookCommand::Update(update) => Some(Asked::about("endpoints.update", update.id)),
        WebhookCommand::Remove { id } => Some(Asked::about("endpoints.remove", *id)),
        WebhookCommand::Enable { id } => Some(Asked::about("endpoints.enable", *id)),
        WebhookCommand::Disable { id } => Some(Asked::about("endpoints.disable", *id)),
        WebhookCommand::RotateSecret { id, .. } => Some(Asked::about("endpoints.rotate_secret", *id)),
        WebhookCommand::Test { id, .. } => Some(Asked::about("endpoints.test", *id)),
        WebhookCommand::Resend(ResendOptions { id: Some(id), .. }) => Some(Asked::about("deliveries.resend", *id)),
        WebhookCommand::Resend(ResendOptions { endpoint: Some(endpoint), dry_run: false, .. }) => {
            Some(Asked::about("deliveries.resend_all", *endpoint))
        }
        WebhookCommand::Resend(_)
        | WebhookCommand::List { .. }
        | WebhookCommand::ShowEndpoint { .. }
        | WebhookCommand::Deliveries(_)
        | WebhookCommand::Show { .. }
        | WebhookCommand::Repair { .. } => None,
        WebhookCommand::RotateKeyring { .. } => {
            Some(Asked { command: "keyring.rotate", user_id: None, subject: Subject::default() })
        }
    }
}

async fn perform(
    admin: &WebhookAdmin,
    command: WebhookCommand,
    output: Output,
    audit: &mut Audit,
) -> Result<(), CommandFailure> {
    match command {
        WebhookCommand::Add(AddEndpoint { user, url, events }) => {
            let new = NewEndpoint { user_id: user, url, events: events.into_iter().collect() };
            let (endpoint, secret) = admin.add(new).await?;
            audit.made(endpoint.id);
            output.print(&EndpointWithSecret::new(&endpoint, &secret), |shown| show::added(user, shown))?;
        }
        WebhookCommand::List { user } => {
            let Endpoints { readable, unreadable } = admin.list(user).await?;
            let rows: Vec<_> = readable.iter().map(EndpointDocument::from).collect();
            output.print(&rows, |rows| show::endpoints(user, rows))?;
            let unreadable: Vec<_> = unreadable.into_iter().map(|endpoint| endpoint.unreadable).collect();
            none_left_out(&unreadable)?;
        }
        WebhookCommand::ShowEndpoint { id } => {
            let (endpoint, health) = admin.endpoint(id).await?;
            let shown = EndpointWithHealth { endpoint: EndpointDocument::from(&endpoint), health };
            output.print(&shown, show::endpoint)?;
        }
        WebhookCommand::Update(UpdateEndpoint { id, url, events }) => {
            let events = (!events.is_empty()).then(|| events.into_iter().collect());
            let endpoint = admin.update(id, EndpointUpdate { url, events }).await?;
            output.print(&EndpointDocument::from(&endpoint), show::changed)?;
        }
        WebhookCommand::Remove { id } => {
            let removal = admin.remove(id).await?;
            output.print(&RemovedEndpoint::new(id, &removal), show::removed)?;
            none_left_out(&removal.unreadable)?;
        }
        WebhookCommand::Enable { id } => {
            let endpoint = admin.enable(id).await?;
            output.print(&EndpointDocument::from(&endpoint), show::enabled)?;
        }
        WebhookCommand::Disable { id } => {
            let endpoint = admin.disable(id).await?;
            output.print(&EndpointDocument::from(&endpoint), show::disabled)?;
        }
        WebhookCommand::RotateSecret { id, expire_old: true, .. } => {
            let endpoint = admin.expire_old_secret(id).await?;
            output.print(&EndpointDocument::from(&endpoint), show::expired)?;
        }
        WebhookCommand::RotateSecret { id, activate: false, .. } => {
            let (endpoint, secret) = admin.rotate_secret(id).await?;
            output.print(&EndpointWithSecret::new(&endpoint, &secret), show::rotated)?;
        }
        WebhookCommand::RotateSecret { id, activate: true, .. } => {
            let endpoint = admin.activate_secret(id).await?;
            output.print(&EndpointDocument::from(&endpoint), show::activated)?;
        }
        WebhookCommand::Test { id, event, wait } => {
            let delivery_id = admin.test(id, event).await?;
            audit.made(Subject { endpoint_id: Some(id), ..delivery_id.into() });
            audit.done();
            queued(admin, delivery_id, wait, output).await?;
        }
        WebhookCommand::Deliveries(list) => {
            let rows = deliveries(admin, &list).await?;
            output.print(&rows.readable, |rows| show::deliveries(&list, rows))?;
            none_left_out(&rows.unreadable)?;
        }
        WebhookCommand::Show { id } => {
            let delivery = admin.delivery(id).await?;
            output.print(&DeliveryDocument::new(&delivery, admin.clock.now()), show::delivery)?;
        }
        WebhookCommand::Resend(options) => resend(admin, options, output, audit).await?,
        WebhookCommand::Repair { dry_run } => repair::run(admin, dry_run, output).await?,
        WebhookCommand::RotateKeyring { remove_old } => keyring::rotate(admin, remove_old, output, audit).await?,
    }
    Ok(())
}

/// Tells that a delivery is queued, or waits for its attempt and tells how that ended.
async fn queued(admin: &WebhookAdmin, id: DeliveryId, wait: bool, output: Output) -> Result<(), CommandFailure> {
    if wait {
        return outcome::wait(admin, id, output).await;
    }
    Ok(output.print(&SentDelivery { delivery_id: id }, show::queued)?)
}

/// Sends the delivery that was named again, or those of the endpoint that was named.
async fn resend(
    admin: &WebhookAdmin,
    options: ResendOptions,
    output: Output,
    audit: &mut Audit,
) -> Result<(), CommandFailure> {
    let ResendOptions { id, endpoint, status, since, until, dry_run, wait } = options;
    if let Some(id) = id {
        let delivery_id = admin.resend(id).await?;
        audit.done();
        queued(admin, delivery_id, wait, output).await?;
    }
    if let Some(endpoint) = endpoint {
        let statuses = if status.is_empty() { Recoverable::ALL.to_vec() } else { status };
        let selection = Selection { statuses: statuses.into_iter().collect(), since, until };
        recovery::resend(admin, endpoint, &selection, dry_run, output).await?;
    }
    Ok(())
}

/// Reads an endpoint's deliveries, newest first, page by page until there are enough. Of those that cannot be read, all
/// that were met on the way are returned.
async fn deliveries(admin: &WebhookAdmin, list: &ListDeliveries) -> Result<Rows<DeliveryRow>, CommandFailure> {
    let ListDeliveries { id, status, event, since, until, limit } = *list;
    let wanted = WantedDeliveries { status, event, since, until };
    let limit = limit.map_or(usize::MAX, NonZeroUsize::get);
    let (mut rows, mut from) = (Rows::default(), None);
    loop {
        let page = admin.deliveries(id, &wanted, from, limit.saturating_sub(rows.readable.len()).min(PAGE)).await?;
        let now = admin.clock.now();
        rows.readable.extend(page.deliveries.iter().map(|delivery| DeliveryRow::new(delivery, now)));
        rows.unreadable.extend(page.unreadable);
        from = page.next;
        if from.is_none() || rows.readable.len() >= limit {
            return Ok(rows);
        }
    }
}
