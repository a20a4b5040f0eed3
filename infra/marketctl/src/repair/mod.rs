//! `marketctl repair`: brings tables back in line after a restore, and resets versions.

mod error;
mod progress;
mod report;
mod reset;
mod rows;

use std::sync::Arc;

use accounts::Accounts;
use admin::keys::KeyAdmin;
use market::Market;
use platform::resources::Table;
use repair::{Keys, Mode, Repair, Versioned};
use webhooks::store::WebhookStore;

use error::RepairFailed;
pub(crate) use progress::RepairProgress;
use report::Report;
use reset::ResetReport;

use crate::cli::RepairOptions;
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(options: RepairOptions, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let RepairOptions { dry_run, restored, table, name, revoked_in, reset_version } = options;
    let table = table.map(Table::from);
    if revoked_in.is_some() && table != Some(Table::Keys) {
        return Err(RepairFailed::NoKeys.into());
    }
    let versioned = match reset_version.as_slice() {
        [kind, id] => Some((format!("{kind} {id}"), Versioned::parse(kind, id).map_err(RepairFailed::from)?)),
        _ => None,
    };
    let session = Session::open(stack).await?;
    let name = |of: Table| name.clone().unwrap_or_else(|| session.resources.table(of));
    let market = Market::new(session.dynamodb.clone(), name(Table::Market));
    let accounts = Accounts::new(session.dynamodb.clone(), name(Table::Accounts));
    if let Some((entity, versioned)) = versioned {
        let version = versioned.reset(&market, &accounts).await.map_err(RepairFailed::from)?;
        let version = version.ok_or_else(|| RepairFailed::Missing(entity.clone()))?;
        return output.print(&ResetReport { entity, version }, ResetReport::text);
    }
    let clock = Arc::clone(&session.clock);
    let has = |one: Table| table.is_none_or(|table| table == one);
    let market = if has(Table::Market) { Some((market, session.objects().await?)) } else { None };
    let accounts = has(Table::Accounts).then_some(accounts);
    let key_admin = |table: String| KeyAdmin::new(session.dynamodb.clone(), table, Arc::clone(&clock));
    let keys = || Keys { table: key_admin(name(Table::Keys)), damaged: revoked_in.map(key_admin) };
    let keys = has(Table::Keys).then(keys);
    let webhooks = || WebhookStore::new(session.dynamodb.clone(), name(Table::Webhooks));
    let webhooks = has(Table::Webhooks).then(webhooks);
    let repair = Repair { market, accounts, keys, webhooks, clock, mode: Mode { dry_run, restored } };
    let progress = RepairProgress::start();
    let found = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(RepairFailed::from)?;
    drop(progress);
    let report = Report::new(found, dry_run);
    output.print(&report, Report::text)?;
    if report.is_complete() { Ok(()) } else { Err(RepairFailed::Incomplete(report).into()) }
}
