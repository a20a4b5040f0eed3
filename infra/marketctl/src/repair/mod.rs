//! `marketctl repair`: brings the tables of public data and of accounts back in line after a restore, and resets
//! versions.

mod error;
mod progress;
mod report;
mod reset;

use std::sync::Arc;

use accounts::Accounts;
use market::Market;
use platform::resources::Table;
use repair::{Mode, Repair, Versioned};

use error::RepairFailed;
use progress::RepairProgress;
use report::Report;
use reset::ResetReport;

use crate::cli::{RepairOptions, RepairTable};
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(options: RepairOptions, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let RepairOptions { dry_run, restored, table, name, reset_version } = options;
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
    let market = match table {
        Some(RepairTable::Accounts) => None,
        _ => Some((market, session.objects().await?)),
    };
    let accounts = Some(accounts).filter(|_| table != Some(RepairTable::Market));
    let repair = Repair { market, accounts, clock, mode: Mode { dry_run, restored } };
    let progress = RepairProgress::start();
    let found = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(RepairFailed::from)?;
    drop(progress);
    let report = Report::new(found, dry_run);
    output.print(&report, Report::text)?;
    if report.failed.is_empty() { Ok(()) } else { Err(RepairFailed::Users(report).into()) }
}
