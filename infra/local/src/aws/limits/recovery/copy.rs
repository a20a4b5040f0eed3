//! Whole tables, copied below the API.

use std::collections::HashMap;

use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::types::{AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement};
use dynoxide::{Database, ImportOptions, Item};
use serde::de::DeserializeOwned;

use crate::aws::limits::flights::RowKey;
use crate::aws::limits::tables::KeyNames;

/// A table's definition and its rows. Settings such as its tags are not part of it.
#[derive(Clone)]
pub(super) struct Copied {
    keys: Vec<KeySchemaElement>,
    attributes: Vec<AttributeDefinition>,
    indexes: Option<Vec<GlobalSecondaryIndex>>,
    pub(super) rows: HashMap<RowKey, Item>,
}

impl Copied {
    /// Copies a table as it is.
    pub(super) fn from_table(database: &Database, name: &str) -> Result<Self, String> {
        let metadata = database.get_table_metadata(name).map_err(|error| error.to_string())?;
        let metadata = metadata.ok_or_else(|| format!("no table {name}"))?;
        let keys: Vec<KeySchemaElement> = parsed(&metadata.key_schema)?;
        let indexes: Option<Vec<GlobalSecondaryIndex>> = metadata.gsi_definitions.as_deref().map(parsed).transpose()?;
        let names = KeyNames::new(&keys).ok_or("a table without keys")?;
        Ok(Self {
            attributes: parsed(&metadata.attribute_definitions)?,
            indexes: indexes.filter(|indexes| !indexes.is_empty()),
            rows: rows(database, name, &names)?,
            keys,
        })
    }

    /// Makes a table of it.
    pub(super) fn into_table(self, database: &Database, name: &str) -> Result<(), String> {
        let definition = CreateTableRequest {
            table_name: name.to_owned(),
            key_schema: self.keys,
            attribute_definitions: self.attributes,
            global_secondary_indexes: self.indexes,
            billing_mode: Some("PAY_PER_REQUEST".to_owned()),
            ..CreateTableRequest::default()
        };
        database.create_table(definition).map_err(|error| error.to_string())?;
        let rows = self.rows.into_values().collect();
        database.import_items(name, rows, ImportOptions::default()).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn parsed<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn rows(database: &Database, name: &str, keys: &KeyNames) -> Result<HashMap<RowKey, Item>, String> {
    let (mut rows, mut from) = (HashMap::new(), None);
    loop {
        let request = ScanRequest {
            table_name: name.to_owned(),
            exclusive_start_key: from,
            consistent_read: Some(true),
            ..ScanRequest::default()
        };
        let page = database.scan(request).map_err(|error| error.to_string())?;
        for row in page.items.into_iter().flatten() {
            let key = keys.key_of(&row).ok_or("a row without keys")?;
            rows.insert(RowKey::new(name, &key), row);
        }
        from = page.last_evaluated_key;
        if from.is_none() {
            return Ok(rows);
        }
    }
}
