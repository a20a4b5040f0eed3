//! Rotates the keyring.

use std::cell::Cell;
use std::time::Duration;

use admin::webhooks::{Resealed, WebhookAdmin};
use common::ids::EndpointId;
use serde::Serialize;
use terminal::{Bar, Output, count};

use crate::audit::Audit;
use crate::failure::CommandFailure;
use crate::interrupt::Interrupt;

const SPINNER_TEMPLATE: &str = "{spinner} {msg}";

/// The result of a rotation.
#[derive(Debug, Serialize)]
struct KeyringReport {
    /// The id of the key that seals secrets from now on.
    key_id: String,
    /// The number of endpoints whose secrets an older key had sealed.
    resealed: u64,
    /// The number of endpoints whose secrets this key had sealed already.
    unchanged: u64,
    /// Endpoints that cannot be read, or have a secret that the keyring cannot open.
    failed: Vec<EndpointId>,
    /// The number of older keys that were removed from the keyring.
    removed_keys: usize,
}

/// Rotates the keyring. Ctrl-C ends it, and says what to do.
pub(super) async fn rotate(
    admin: &WebhookAdmin,
    remove_old: bool,
    output: Output,
    audit: &mut Audit,
) -> Result<(), CommandFailure> {
    let interrupt = Interrupt::catch();
    tokio::select! {
        done = rotate_all(admin, remove_old, output, audit) => done,
        () = interrupt.interrupted() => Err(CommandFailure::new(
            "the rotation was interrupted",
            "No secret is lost: the keyring has every key that seals one. Run the command again, which finishes it.",
        )),
    }
}

async fn rotate_all(
    admin: &WebhookAdmin,
    remove_old: bool,
    output: Output,
    audit: &mut Audit,
) -> Result<(), CommandFailure> {
    let spinner = Bar::spinner(SPINNER_TEMPLATE);
    let begun = Cell::new(false);
    let waiting = |left: Duration| {
        if !begun.replace(true) {
            output.part(|| waiting(left));
        }
        spinner.set_message(waiting(left));
    };
    let key_id = admin.rotate_keyring(waiting).await?;
    audit.done();
    begun.set(false);
    let done = admin.reseal(|done| spinner.set_message(progress(done))).await?;
    let removed_keys = if remove_old && done.failed.is_empty() { admin.remove_older_keys(waiting).await? } else { 0 };
    drop(spinner);
    let Resealed { resealed, unchanged, failed } = done;
    let report = KeyringReport { key_id, resealed, unchanged, failed, removed_keys };
    output.print(&report, text)?;
    let failed = &report.failed;
    if failed.is_empty() {
        return Ok(());
    }
    let what = "endpoints that cannot be read, or have a secret that the keyring cannot open";
    Err(CommandFailure::new(
        format!("{what}: {}", failed.len()),
        "Deliveries to them wait. docs/operations.md (The keyring) says how to bring back a key, or to replace a secret whose key is lost.",
    )
    .with_details(failed.iter().map(|id| format!("endpoint {id}")))
    .with_member("failed", failed))
}

fn waiting(left: Duration) -> String {
    let seconds = left.as_secs() + 1;
    format!("Waiting for {seconds} seconds, because functions may still use the keyring from before the last rotation.")
}

fn progress(done: &Resealed) -> String {
    format!("{} endpoints resealed", count(done.resealed))
}

fn text(report: &KeyringReport) -> String {
    let KeyringReport { key_id, resealed, removed_keys, .. } = report;
    let older = match removed_keys {
        0 => {
            "The older keys stay in the keyring, which harms nothing. The next rotation with --remove-old removes them."
                .to_owned()
        }
        count => format!("Older keys removed from the keyring: {count}."),
    };
    format!("Key {key_id} seals secrets from now on. Endpoints resealed with it: {resealed}.\n{older}")
}
