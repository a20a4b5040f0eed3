//! Repairs the copy, where nobody reads it yet.

use std::sync::Arc;

use accounts::Accounts;
use market::Market;
use platform::preflight::ResourceKind;
use platform::resources::Table;
use repair::{Mode, Repair};

use super::error::Cause;
use crate::check::check_table;
use crate::remedy::with_remedy;
use crate::repair::RepairProgress;
use crate::session::Session;

/// The copy as a repair found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// Everything was in line.
    InLine,
    /// Something was brought in line.
    Repaired,
    /// There is no repair of such a table.
    NotLookedAt,
}

/// Brings the copy in line. Does nothing wrong if it is repeated.
pub(super) async fn mend(session: &Session, table: Table, copy: &str) -> Result<Mended, Cause> {
    check(session, table, copy).await?;
    let client = &session.dynamodb;
    let mut repair = Repair {
        market: None,
        accounts: None,
        clock: Arc::clone(&session.clock),
        mode: Mode { dry_run: false, restored: true },
    };
    match table {
        Table::Market => {
            let objects = session.objects().await.map_err(|error| Cause(error.to_string()))?;
            repair.market = Some((Market::new(client.clone(), copy.to_owned()), objects));
        }
        Table::Accounts => repair.accounts = Some(Accounts::new(client.clone(), copy.to_owned())),
        Table::Keys | Table::Webhooks => return Ok(Mended::NotLookedAt),
    }
    let progress = RepairProgress::start();
    let report = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(|error| Cause(error.to_string()))?;
    let failed = report.orders.failed.len();
    if failed > 0 {
        return Err(Cause(format!(
            "the orders of {failed} users could not be repaired; `marketctl repair --restored --table accounts --name {copy}` names them"
        )));
    }
    Ok(if report.is_in_line() { Mended::InLine } else { Mended::Repaired })
}

/// Checks that a table and its indexes can be used.
pub(super) async fn check(session: &Session, table: Table, name: &str) -> Result<(), Cause> {
    let checked = check_table(&session.dynamodb, name, table.indexes()).await;
    checked.map_err(|problem| Cause(with_remedy(&problem, ResourceKind::Table, name)))
}
