//! Repairs the copy, where nobody reads it yet.

use std::sync::Arc;

use accounts::Accounts;
use admin::keys::KeyAdmin;
use inventory::check_table;
use market::Market;
use platform::preflight::ResourceKind;
use platform::resources::Table;
use webhooks::store::WebhookStore;

use super::error::Cause;
use crate::remedy::with_remedy;
use crate::repair::{Keys, Mode, Repair, RepairProgress};
use crate::session::Session;

/// The copy as a repair found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// Everything was in line.
    InLine,
    /// Something was brought in line.
    Repaired,
}

/// Brings the copy in line. Keys that are revoked in the damaged table, if there still is one, are revoked in the copy
/// too. Does nothing wrong if it is repeated.
pub(super) async fn mend(session: &Session, table: Table, copy: &str, damaged: Option<&str>) -> Result<Mended, Cause> {
    check(session, table, copy).await?;
    let client = &session.dynamodb;
    let mut repair = Repair {
        market: None,
        accounts: None,
        keys: None,
        webhooks: None,
        clock: Arc::clone(&session.clock),
        mode: Mode { dry_run: false, restored: true },
    };
    match table {
        Table::Market => {
            let objects = session.objects().await.map_err(|error| Cause(error.to_string()))?;
            repair.market = Some((Market::new(client.clone(), copy.to_owned()), objects));
        }
        Table::Accounts => repair.accounts = Some(Accounts::new(client.clone(), copy.to_owned())),
        Table::Keys => {
            let admin = |name: &str| KeyAdmin::new(client.clone(), name.to_owned(), Arc::clone(&session.clock));
            repair.keys = Some(Keys { table: admin(copy), damaged: damaged.map(admin) });
        }
        Table::Webhooks => repair.webhooks = Some(WebhookStore::new(client.clone(), copy.to_owned())),
    }
    let progress = RepairProgress::start();
    let report = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(|error| Cause(error.to_string()))?;
    let left = report.orders.failed.len() + report.keys.unreadable.len() + report.endpoints.unreadable.len();
    if left > 0 {
        let table = table.suffix();
        return Err(Cause(format!(
            "{left} users or rows could not be repaired; `marketctl repair --restored --table {table} --name {copy}` names them"
        )));
    }
    Ok(if report.is_in_line() { Mended::InLine } else { Mended::Repaired })
}

/// Checks that a table and its indexes can be used.
pub(super) async fn check(session: &Session, table: Table, name: &str) -> Result<(), Cause> {
    let checked = check_table(&session.dynamodb, name, table.indexes()).await;
    checked.map_err(|problem| Cause(with_remedy(&problem, ResourceKind::Table, name)))
}
