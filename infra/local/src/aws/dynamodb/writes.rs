//! The rows that writes change, and what that costs: units by the size of the item before and after it, in the table
//! and in each index.

use std::collections::BTreeMap;

use dynoxide::Item;
use dynoxide::types::{TRANSACTIONAL_CAPACITY_FACTOR, item_size, table_write_capacity_units, write_capacity_units};
use serde_json::Value;

use super::tables::{Schema, Tables, item};
use crate::aws::limits::{Access, Resource, Use};

/// A row of any table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowKey {
    pub(super) table: String,
    key: BTreeMap<String, Option<String>>,
}

/// A write of one item, alone or in a transaction.
pub(super) struct Write {
    pub(super) table: String,
    pub(super) key: Item,
    schema: Schema,
    effect: Effect,
    /// By how much it costs more than a single write.
    factor: f64,
}

enum Effect {
    Put(Item),
    Update,
    Delete,
    /// A condition only.
    Check,
}

impl RowKey {
    pub(super) fn new(table: &str, key: &Item) -> Self {
        let key = key.iter().map(|(name, value)| (name.clone(), value.to_key_string())).collect();
        Self { table: table.to_owned(), key }
    }
}

impl Write {
    /// Reads the writes of a request. Returns `None` if it writes nothing, or cannot be understood.
    pub(super) fn from_request(tables: &Tables, operation: &str, request: &Value) -> Option<Vec<Self>> {
        match operation {
            "PutItem" | "UpdateItem" | "DeleteItem" => {
                let name = operation.strip_suffix("Item")?;
                Some(vec![Self::parse(tables, name, request, 1.0)?])
            }
            "TransactWriteItems" => {
                let parse = |part: &Value| {
                    let (name, write) = part.as_object()?.iter().find(|(_, write)| !write.is_null())?;
                    Self::parse(tables, name, write, TRANSACTIONAL_CAPACITY_FACTOR)
                };
                request["TransactItems"].as_array()?.iter().map(parse).collect()
            }
            _ => None,
        }
    }

    fn parse(tables: &Tables, name: &str, write: &Value, factor: f64) -> Option<Self> {
        let table = write["TableName"].as_str()?.to_owned();
        let schema = tables.schema(&table)?;
        let (key, effect) = match name {
            "Put" => {
                let item = item(&write["Item"])?;
                (schema.keys.key_of(&item)?, Effect::Put(item))
            }
            "Update" => (item(&write["Key"])?, Effect::Update),
            "Delete" => (item(&write["Key"])?, Effect::Delete),
            "ConditionCheck" => (item(&write["Key"])?, Effect::Check),
            _ => return None,
        };
        Some(Self { table, key, schema, effect, factor })
    }

    /// Returns whether this is more than a condition.
    pub(super) fn is_change(&self) -> bool {
        !matches!(self.effect, Effect::Check)
    }

    /// Returns the row that is written.
    pub(super) fn row(&self) -> RowKey {
        RowKey::new(&self.table, &self.key)
    }

    /// Returns the item that is stored now.
    pub(super) fn stored(&self, tables: &Tables) -> Option<Item> {
        tables.item(&self.table, &self.key)
    }

    /// Returns what the write costs even if its condition fails: the size of the stored item, at least one unit. It
    /// also names the partitions of indexes that it may change. An update may change every entry of its item.
    pub(super) fn reserve(&self, before: Option<&Item>) -> Vec<Use> {
        let mut uses = vec![self.table_use(table_write_capacity_units(before.map(item_size), None))];
        if self.is_change() {
            let after = if let Effect::Put(item) = &self.effect { Some(item) } else { None };
            uses.extend(self.index_uses(before, after).into_iter().map(|used| Use { units: 0.0, ..used }));
        }
        uses
    }

    /// Returns what the write cost beyond what was reserved, after it was applied.
    pub(super) fn settle(&self, tables: &Tables, before: Option<&Item>) -> Vec<Use> {
        if !self.is_change() {
            return Vec::new();
        }
        let after = self.stored(tables);
        let before_size = before.map(item_size);
        let reserved = table_write_capacity_units(before_size, None);
        let more = table_write_capacity_units(before_size, after.as_ref().map(item_size)) - reserved;
        let mut uses = vec![self.table_use(more)];
        uses.extend(self.index_uses(before, after.as_ref()));
        uses
    }

    fn table_use(&self, units: f64) -> Use {
        let partition = self.schema.keys.partition_of(&self.key);
        Use { resource: Resource::table(&self.table), partition, access: Access::Write, units: self.factor * units }
    }

    /// Returns what a change costs in the indexes. An entry that moves is removed and put, and one that stays as it is
    /// costs nothing.
    fn index_uses(&self, before: Option<&Item>, after: Option<&Item>) -> Vec<Use> {
        let mut uses = Vec::new();
        for index in &self.schema.indexes {
            let entry = |item: Option<&Item>| index.entry(&self.schema.keys, item?);
            let (old, new) = (entry(before), entry(after));
            let mut add = |entry: &Item, size: usize| {
                let resource = Resource { table: self.table.clone(), index: Some(index.name.clone()) };
                let units = self.factor * write_capacity_units(size);
                uses.push(Use { resource, partition: index.keys.partition_of(entry), access: Access::Write, units });
            };
            match (&old, &new) {
                (Some(old), Some(new)) if index.keys.key_of(old) == index.keys.key_of(new) => {
                    if old != new {
                        add(new, item_size(old).max(item_size(new)));
                    }
                }
                _ => old.iter().chain(&new).for_each(|entry| add(entry, item_size(entry))),
            }
        }
        uses
    }
}
