//! `marketctl repair`: its options, what it prints, and why it fails.

use std::sync::Arc;

use accounts::Accounts;
use admin::audit::Subject;
use admin::keys::KeyAdmin;
use common::preflight::{Problem, ResourceKind};
use common::resources::Table;
use market::Market;
use pretraffic::inventory::check_table;
use serde::Serialize;
use terminal::{Output, number_table};
use webhooks::store::WebhookStore;

use super::settings::Lacking;
use super::versions::{ResetReport, Versioned};
use super::{Count, Repair, RepairError, Repaired};
use crate::audit;
use crate::cli::RepairOptions;
use crate::failure::{CommandFailure, with_remedy};
use crate::session::Session;

/// The command's name in audit lines.
const REPAIR: &str = "repair";

const KIND_HINT: &str =
    "The kind is the type of a message, and the id is that in its messages; for a balance it is the account's.";

/// What a repair has done, or would do.
#[derive(Debug, Serialize)]
struct Report {
    table: &'static str,
    name: String,
    dry_run: bool,
    counts: Vec<Count>,
    /// What the table lacked of what the template gives the stack's own one.
    settings: Vec<&'static str>,
    /// The other tables of keys that told which keys are revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_as_in: Option<Vec<String>>,
    /// Rows that were left as they are.
    unreadable: Vec<UnreadableRow>,
}

#[derive(Debug, Serialize)]
struct UnreadableRow {
    row: String,
    what: String,
}

pub(crate) async fn run(options: RepairOptions, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let RepairOptions { dry_run, table, name, revoked_in, reset_version } = options;
    if let [kind, id] = reset_version.as_slice() {
        return reset(kind, id, session, output).await;
    }
    let Some(table) = table.map(Table::from) else { return Ok(()) };
    let name = name.unwrap_or_else(|| session.resources.table(table));
    let own = session.resources.own_table(table);
    if name != own && !name.starts_with(&format!("{own}-")) {
        let why = format!("the service takes no other table in place of {own} than one whose name begins with {own}-");
        return Err(CommandFailure::invalid("name", &why, "Restore the table under such a name."));
    }
    if table != Table::Keys && !revoked_in.is_empty() {
        let why = "only a table of keys tells which keys are revoked";
        return Err(CommandFailure::invalid("revoked-in", why, "Leave it out, or repair --table keys."));
    }
    let failed = |what: &str, problem: &Problem| {
        let message = format!("{what}: {}", with_remedy(problem, ResourceKind::Table, &name));
        CommandFailure::new(message, "Then run it again.")
    };
    let unusable = |problem: Problem| failed("nothing was done", &problem);
    check_table(&session.dynamodb, &name, table.indexes()).await.map_err(unusable)?;
    let others = match table {
        Table::Keys => other_tables(session, &name, revoked_in).await?,
        _ => Vec::new(),
    };
    let lacking = Lacking::of(&session.dynamodb, &name, &own).await.map_err(unusable)?;
    let settings = lacking.names();
    let mut repair = Repair::new(Arc::clone(&session.clock), dry_run);
    repair.is_in_use = name == session.resources.table(table);
    let ended = Box::pin(repair_table(&mut repair, session, table, &name, &others)).await?;
    let Repaired { counts, changed_keys, changed_endpoints, unreadable } = repair.done;
    // Last, so that a table which lacks something was not repaired to the end.
    if !dry_run && ended.is_ok() && unreadable.is_empty() {
        let given = lacking.give(&session.dynamodb, &name).await;
        given.map_err(|problem| failed("the rows are in line, but the repair ended early", &problem))?;
    }
    if !dry_run {
        let keys = changed_keys.into_iter().map(|(key, owner)| (owner, Subject::from(key)));
        let endpoints = changed_endpoints.into_iter().map(|(endpoint, owner)| (Some(owner), Subject::from(endpoint)));
        audit::tell(session, REPAIR, keys.chain(endpoints)).await;
    }
    let unreadable = unreadable.into_iter().map(|row| UnreadableRow { row: row.row, what: row.what });
    let unreadable = unreadable.collect();
    let revoked_as_in = (table == Table::Keys).then_some(others);
    let table = table.suffix();
    let report = Report { table, name, dry_run, counts, settings, revoked_as_in, unreadable };
    output.print(&report, Report::text)?;
    ended?;
    if report.unreadable.is_empty() {
        return Ok(());
    }
    let message = format!("rows that cannot be read: {}", report.unreadable.len());
    let hint = "Everything else is in line. Look at these rows, then repeat the repair.";
    let rows = report.unreadable.iter().map(|UnreadableRow { row, what }| format!("{row}: {what}"));
    Err(CommandFailure::new(message, hint).with_details(rows))
}

/// Repairs a table. The inner error ended the repair when it had already begun.
async fn repair_table(
    repair: &mut Repair,
    session: &Session,
    table: Table,
    name: &str,
    others: &[String],
) -> Result<Result<(), RepairError>, CommandFailure> {
    let (client, name) = (session.dynamodb.clone(), name.to_owned());
    Ok(match table {
        Table::Keys => {
            let admin = |name: String| KeyAdmin::new(client.clone(), name, Arc::clone(&session.clock));
            let others: Vec<KeyAdmin> = others.iter().cloned().map(admin).collect();
            repair.keys(&admin(name), &others).await
        }
        Table::Market => repair.market(&Market::new(client, name), &session.objects().await?).await,
        Table::Accounts => repair.accounts(&Accounts::new(client, name)).await,
        Table::Webhooks => repair.webhooks(&WebhookStore::new(client, name)).await,
    })
}

/// Returns the tables of keys that are named, and beside these the stack's own one and the one that the service uses,
/// without the one that is repaired. Of the last two, one may be gone.
async fn other_tables(session: &Session, name: &str, named: Vec<String>) -> Result<Vec<String>, CommandFailure> {
    let mut others = named.clone();
    others.extend([session.resources.own_table(Table::Keys), session.resources.table(Table::Keys)]);
    let mut found = Vec::new();
    for other in others {
        if other == name || found.contains(&other) {
            continue;
        }
        match check_table(&session.dynamodb, &other, &[]).await {
            Ok(()) => found.push(other),
            Err(Problem::Missing) if !named.contains(&other) => {}
            Err(problem) => {
                let message = format!("nothing was done: {}", with_remedy(&problem, ResourceKind::Table, &other));
                return Err(CommandFailure::new(message, "Then run it again."));
            }
        }
    }
    Ok(found)
}

impl Report {
    fn text(&self) -> String {
        let changed = if self.dry_run { "TO CHANGE" } else { "CHANGED" };
        let rows = self.counts.iter().map(|Count { what, looked_at, changed }| {
            [(*what).to_owned(), terminal::count(*looked_at), terminal::count(*changed)]
        });
        let mut parts = vec![number_table(["ROWS", "FOUND", changed], rows)];
        if !self.settings.is_empty() {
            let done = if self.dry_run { "lacks" } else { "got" };
            parts.push(format!("{} {done} {}.", self.name, self.settings.join(", ")));
        }
        match self.revoked_as_in.as_deref() {
            Some([]) => parts.push("No other table of keys was asked for keys that were revoked there.".to_owned()),
            Some(others) => {
                let done = if self.dry_run { "would be revoked" } else { "is revoked" };
                parts.push(format!("What is revoked in {} {done}.", others.join(" or ")));
            }
            None => {}
        }
        parts.join("\n\n")
    }
}

/// Sets the version of an entity to 0.
async fn reset(kind: &str, id: &str, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let (entity, versioned) = (format!("{kind} {id}"), Versioned::parse(kind, id));
    let versioned =
        versioned.map_err(|error| CommandFailure::invalid("reset-version", &error.to_string(), KIND_HINT))?;
    let market = Market::new(session.dynamodb.clone(), session.resources.table(Table::Market));
    let accounts = Accounts::new(session.dynamodb.clone(), session.resources.table(Table::Accounts));
    let version = versioned.reset(&market, &accounts).await.map_err(RepairError::from)?;
    let nothing = || CommandFailure::new(format!("nothing was done: there is no {entity}"), KIND_HINT);
    let version = version.ok_or_else(nothing)?;
    audit::tell(session, REPAIR, [(None, Subject::default())]).await;
    Ok(output.print(&ResetReport { entity, version }, ResetReport::text)?)
}

impl From<RepairError> for CommandFailure {
    fn from(error: RepairError) -> Self {
        let hint = match &error {
            RepairError::Written(_) => {
                "Nobody may write to this table meanwhile. Repair a restored one before it is used."
            }
            RepairError::Store(_) => "Fix the cause (`marketctl check` helps), then repeat the repair.",
        };
        Self::new(format!("the repair ended early: {error}"), hint)
    }
}
