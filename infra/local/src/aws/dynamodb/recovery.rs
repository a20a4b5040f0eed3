//! Point-in-time recovery, which the embedded DynamoDB has not: whether a table has it, and a restore. A restored table
//! holds what the table holds at the moment of the call, whatever moment was asked for. As with AWS, its settings are not
//! copied.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use dynoxide::actions::scan::ScanRequest;
use dynoxide::{ImportOptions, Item};
use http::StatusCode;
use serde_json::{Value, json};

use super::tables::{Answer, Tables};
use super::writes::RowKey;

/// The name of an error, and its message.
type Refused = (&'static str, String);

/// The tables without point-in-time recovery, which are forgotten when the process ends. Others have it, as the template
/// gives it to them, until they are restored.
#[derive(Default)]
pub(super) struct Recovery(Mutex<BTreeSet<String>>);

/// A table's definition and its rows. Settings such as its tags are not part of it.
pub(super) struct Copied {
    definition: Value,
    rows: HashMap<RowKey, Item>,
}

impl Recovery {
    /// Answers a call, if it is about recovery.
    pub(super) fn answer(&self, tables: &Tables, operation: &str, body: &[u8]) -> Option<Answer> {
        let request = || serde_json::from_slice::<Value>(body).unwrap_or_default();
        let answered = match operation {
            "UpdateContinuousBackups" => self.switch(tables, &request()),
            "DescribeContinuousBackups" => self.describe(tables, table_name(&request())),
            "RestoreTableToPointInTime" => self.restore(tables, &request()),
            _ => return None,
        };
        Some(match answered {
            Ok(body) => Answer::json(StatusCode::OK, &body),
            Err((name, message)) => Answer::error(name, json!({ "message": message })),
        })
    }

    fn switch(&self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let table = table_name(request);
        // Says whether there is such a table.
        self.describe(tables, table)?;
        let mut without = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if request["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] == json!(true) {
            without.remove(table);
        } else {
            without.insert(table.to_owned());
        }
        drop(without);
        self.describe(tables, table)
    }

    fn describe(&self, tables: &Tables, table: &str) -> Result<Value, Refused> {
        if tables.schema(table).is_none() {
            return Err(("TableNotFoundException", format!("Table not found: {table}")));
        }
        let is_on = !self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(table);
        let recovery = json!({ "PointInTimeRecoveryStatus": if is_on { "ENABLED" } else { "DISABLED" } });
        let description = json!({ "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery });
        Ok(json!({ "ContinuousBackupsDescription": description }))
    }

    fn restore(&self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let [source, target] =
            ["SourceTableName", "TargetTableName"].map(|name| request[name].as_str().unwrap_or_default());
        if tables.schema(target).is_some() {
            return Err(("TableAlreadyExistsException", format!("Table already exists: {target}")));
        }
        let copied = Copied::from_table(tables, source).and_then(|copied| copied.into_table(tables, target));
        copied.map_err(|message| ("InternalServerError", message))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(target.to_owned());
        Ok(json!({ "TableDescription": { "TableName": target, "TableStatus": "CREATING" } }))
    }
}

fn table_name(request: &Value) -> &str {
    request["TableName"].as_str().unwrap_or_default()
}

impl Copied {
    /// Copies a table as it is.
    pub(super) fn from_table(tables: &Tables, name: &str) -> Result<Self, String> {
        let metadata = tables.0.get_table_metadata(name).map_err(|error| error.to_string())?;
        let (metadata, schema) = metadata.zip(tables.schema(name)).ok_or_else(|| format!("no table {name}"))?;
        let parsed = |json: &str| serde_json::from_str::<Value>(json).map_err(|error| error.to_string());
        let mut definition = json!({
            "KeySchema": parsed(&metadata.key_schema)?,
            "AttributeDefinitions": parsed(&metadata.attribute_definitions)?,
            "BillingMode": "PAY_PER_REQUEST",
        });
        if let Some(indexes) = metadata.gsi_definitions.filter(|_| !schema.indexes.is_empty()) {
            definition["GlobalSecondaryIndexes"] = parsed(&indexes)?;
        }
        let (mut rows, mut exclusive_start_key) = (HashMap::new(), None);
        loop {
            let table_name = name.to_owned();
            let scan = ScanRequest { table_name, exclusive_start_key, ..ScanRequest::default() };
            let page = tables.0.scan(scan).map_err(|error| error.to_string())?;
            for row in page.items.into_iter().flatten() {
                let key = schema.keys.key_of(&row).ok_or("a row without keys")?;
                rows.insert(RowKey::new(name, &key), row);
            }
            exclusive_start_key = page.last_evaluated_key;
            if exclusive_start_key.is_none() {
                return Ok(Self { definition, rows });
            }
        }
    }

    /// Makes a table of it.
    pub(super) fn into_table(mut self, tables: &Tables, name: &str) -> Result<(), String> {
        self.definition["TableName"] = json!(name);
        let made = tables.answer("CreateTable", self.definition.to_string().as_bytes());
        if !made.status.is_success() {
            return Err(String::from_utf8_lossy(&made.body).into_owned());
        }
        let rows = self.rows.into_values().collect();
        tables.0.import_items(name, rows, ImportOptions::default()).map_err(|error| error.to_string())?;
        Ok(())
    }
}
