//! The `webhooks` commands.

mod deliveries;
mod keyring;
mod outcome;
mod recovery;
mod show;

use admin::ErrorCode;
use admin::audit::Subject;
use admin::webhooks::document::{
    DeliveryDocument, DeliveryOfUser, EndpointDocument, EndpointOfUser, EndpointWithHealth, EndpointWithSecret,
    RemovedEndpoint, SentDelivery,
};
use admin::webhooks::{EndpointUpdate, NewEndpoint, Recoverable, Selection, WebhookAdmin};
use common::ids::{DeliveryId, UserId};
use terminal::Output;
use webhooks::endpoint::{Endpoints, WebhookEndpoint};

use crate::audit::{Asked, Audit};
use crate::cli::{AddEndpoint, ResendOptions, UpdateEndpoint, WebhookCommand};
use crate::confirm::Confirmation;
use crate::failure::{CommandFailure, none_left_out};
use crate::progress::Progress;
use crate::session::Session;

/// What to do if the URL is refused because it leads to this machine.
const LOOPBACK_HINT: &str = "Nothing was changed. To allow endpoints on this machine, start the stack with \
    `cargo run --release -- --allow-loopback-webhooks`, paste the `export` lines that it prints, and try again.";

pub(crate) async fn run(
    command: WebhookCommand,
    session: &Session,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    let admin = session.webhooks().await?;
    confirm(&command, &admin, confirmation).await?;
    let is_refused_as_local = new_url(&command).is_some_and(|url| session.refuses_as_local(url));
    let mut audit = Audit::begin(session, asked(&command)).await;
    let outcome = Box::pin(perform(&admin, command, output, &mut audit)).await;
    audit.end(&outcome);
    outcome.map_err(|failure| match failure.code() {
        Some(ErrorCode::Invalid) if is_refused_as_local => failure.with_hint(LOOPBACK_HINT),
        _ => failure,
    })
}

/// Asks before an endpoint or a secret ends for good.
async fn confirm(
    command: &WebhookCommand,
    admin: &WebhookAdmin,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    match command {
        WebhookCommand::RotateSecret { id, activate: false, expire_old: false }
            if confirmation == Confirmation::Asked =>
        {
            let endpoint = admin.find(*id).await?;
            let (next_active_at, _) = endpoint.secrets.changes(admin.clock.now());
            next_active_at.map_or(Ok(()), |_| {
                confirmation.ask(&format!("Endpoint {id} has a next secret already. It will sign nothing any more."))
            })
        }
        WebhookCommand::Remove { id } => {
            confirmation.require(&format!("This removes endpoint {id}, and ends its pending and held deliveries."))
        }
        WebhookCommand::RotateSecret { id, expire_old: true, .. } => confirmation.require(&format!(
            "Only the newest secret of endpoint {id} will sign. A receiver without it refuses every delivery."
        )),
        WebhookCommand::RotateKeyring { remove_old: true } => confirmation
            .ask("This removes the older keys of the keyring, once every secret is sealed with the new one."),
        _ => Ok(()),
    }
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
        | WebhookCommand::Show { .. } => None,
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
    let now = || admin.clock.now();
    let print = |endpoint: &WebhookEndpoint, text: fn(&EndpointDocument<'_>) -> String| {
        let shown = EndpointOfUser::new(endpoint, EndpointDocument::new(endpoint, now()));
        output.print(&shown, |shown| text(&shown.endpoint))
    };
    match command {
        WebhookCommand::Add(AddEndpoint { user, url, events }) => {
            let new = NewEndpoint { user_id: user, url, events: events.into_iter().collect() };
            let (endpoint, secret) = admin.add(new).await?;
            audit.made(endpoint.id);
            let shown = EndpointOfUser::new(&endpoint, EndpointWithSecret::new(&endpoint, &secret, now()));
            output.print(&shown, |shown| show::added(user, &shown.endpoint))?;
        }
        WebhookCommand::List { user } => {
            list(admin, user, output).await?;
        }
        WebhookCommand::ShowEndpoint { id } => {
            let (endpoint, health) = admin.endpoint(id).await?;
            let shown = EndpointWithHealth { endpoint: EndpointDocument::new(&endpoint, now()), health: Some(health) };
            output.print(&EndpointOfUser::new(&endpoint, shown), show::endpoint)?;
        }
        WebhookCommand::Update(UpdateEndpoint { id, url, events }) => {
            let events = (!events.is_empty()).then(|| events.into_iter().collect());
            let endpoint = admin.update(id, EndpointUpdate { url, events }).await?;
            print(&endpoint, show::changed)?;
        }
        WebhookCommand::Remove { id } => {
            let removal = admin.remove(id).await?;
            output.print(&RemovedEndpoint::new(id, &removal), show::removed)?;
            none_left_out(&removal.unreadable)?;
        }
        WebhookCommand::Enable { id } => {
            let endpoint = admin.enable(id).await?;
            print(&endpoint, show::enabled)?;
        }
        WebhookCommand::Disable { id } => {
            let endpoint = admin.disable(id).await?;
            print(&endpoint, show::disabled)?;
        }
        WebhookCommand::RotateSecret { id, expire_old: true, .. } => {
            let endpoint = admin.expire_old_secret(id).await?;
            print(&endpoint, show::expired)?;
        }
        WebhookCommand::RotateSecret { id, activate: false, .. } => {
            let (endpoint, secret, voided) = admin.rotate_secret(id).await?;
            let shown = EndpointOfUser::new(&endpoint, EndpointWithSecret::new(&endpoint, &secret, now()));
            output.print(&shown, |shown| show::rotated(&shown.endpoint, voided))?;
        }
        WebhookCommand::RotateSecret { id, activate: true, .. } => {
            let endpoint = admin.activate_secret(id).await?;
            print(&endpoint, show::activated)?;
        }
        WebhookCommand::Test { id, event, wait } => {
            let delivery_id = admin.test(id, event).await?;
            audit.made(Subject { endpoint_id: Some(id), ..delivery_id.into() });
            audit.done();
            queued(admin, delivery_id, wait, output).await?;
        }
        WebhookCommand::Deliveries(list) if list.watch => deliveries::watch(admin, &list, output).await?,
        WebhookCommand::Deliveries(list) => deliveries::list(admin, &list, output).await?,
        WebhookCommand::Show { id } => {
            let delivery = admin.delivery(id).await?;
            let shown = DeliveryDocument::new(&delivery, now());
            output.print(&DeliveryOfUser::new(&delivery, shown), show::delivery)?;
        }
        WebhookCommand::Resend(options) => resend(admin, options, output, audit).await?,
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

/// Lists the endpoints of a user, or of all users.
async fn list(admin: &WebhookAdmin, user: Option<UserId>, output: Output) -> Result<(), CommandFailure> {
    let Endpoints { readable, unreadable } = if let Some(user) = user {
        admin.list(user).await?
    } else {
        let progress = Progress::start();
        admin.list_all(|found| progress.show_rows(found as u64, None, "webhook endpoints")).await?
    };
    let (states, now) = (admin.health_of(&readable).await, admin.clock.now());
    let rows = readable.iter().zip(states).map(|(endpoint, health)| {
        EndpointOfUser::new(endpoint, EndpointWithHealth { endpoint: EndpointDocument::new(endpoint, now), health })
    });
    output.print(&rows.collect::<Vec<_>>(), |rows| show::endpoints(user, rows))?;
    let unreadable: Vec<_> = unreadable.into_iter().map(|endpoint| endpoint.unreadable).collect();
    none_left_out(&unreadable)
}
