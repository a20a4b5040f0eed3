//! What a write costs: units by the size of the item before and after it, in the table and in each index.

use dynoxide::Item;
use dynoxide::types::{TRANSACTIONAL_CAPACITY_FACTOR, item_size, table_write_capacity_units, write_capacity_units};
use serde_json::Value;

use super::flights::RowKey;
use super::tables::{Schema, Tables, item};
use super::usage::{Access, Resource, Use};

/// A write of one item, alone or in a transaction.
pub(super) struct Write {
    table: String,
    key: Item,
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

impl Write {
    /// Reads a request of this operation. Returns `None` if it cannot be understood.
    pub(super) fn single(tables: &Tables, operation: &str, request: &Value) -> Option<Self> {
        let name = operation.strip_suffix("Item")?;
        Self::parse(tables, name, request, 1.0)
    }

    /// Reads the writes of a transaction, or returns `None` if one of them cannot be understood.
    pub(super) fn transaction(tables: &Tables, request: &Value) -> Option<Vec<Self>> {
        let parts = request["TransactItems"].as_array()?;
        let parse = |part: &Value| {
            let (name, write) = part.as_object()?.iter().find(|(_, write)| !write.is_null())?;
            Self::parse(tables, name, write, TRANSACTIONAL_CAPACITY_FACTOR)
        };
        parts.iter().map(parse).collect()
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

    /// Returns the name of the table that is written.
    pub(super) fn table(&self) -> &str {
        &self.table
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
        let mut uses = vec![self.table_use(self.factor * table_write_capacity_units(before.map(item_size), None))];
        if !matches!(self.effect, Effect::Check) {
            let after = if let Effect::Put(item) = &self.effect { Some(item) } else { None };
            let indexes = self.index_uses(before, after).into_iter();
            uses.extend(indexes.map(|used| Use { units: 0.0, ..used }));
        }
        uses
    }

    /// Returns what the write cost beyond what was reserved, after it was applied.
    pub(super) fn settle(&self, tables: &Tables, before: Option<&Item>) -> Vec<Use> {
        let updated;
        let after = match &self.effect {
            Effect::Put(item) => Some(item),
            Effect::Update => {
                updated = self.stored(tables);
                updated.as_ref()
            }
            Effect::Delete => None,
            Effect::Check => return Vec::new(),
        };
        let before_size = before.map(item_size);
        let reserved = table_write_capacity_units(before_size, None);
        let more = table_write_capacity_units(before_size, after.map(item_size)) - reserved;
        let mut uses = vec![self.table_use(self.factor * more)];
        uses.extend(self.index_uses(before, after));
        uses
    }

    fn table_use(&self, units: f64) -> Use {
        let partition = self.schema.keys.partition_of(&self.key);
        Use { resource: Resource::table(&self.table), partition, access: Access::Write, units }
    }

    /// Returns what a change costs in the indexes. An entry that moves is removed and put, and one that stays as it is
    /// costs nothing.
    fn index_uses(&self, before: Option<&Item>, after: Option<&Item>) -> Vec<Use> {
        let mut uses = Vec::new();
        for index in &self.schema.indexes {
            let entry = |item: Option<&Item>| index.entry(&self.schema.keys, item?);
            let (old, new) = (entry(before), entry(after));
            let mut add = |entry: &Item, size: usize| {
                let resource = Resource::index(&self.table, &index.name);
                let units = self.factor * write_capacity_units(size);
                let partition = index.keys.partition_of(entry);
                uses.push(Use { resource, partition, access: Access::Write, units });
            };
            match (&old, &new) {
                (None, None) => {}
                (Some(entry), None) | (None, Some(entry)) => add(entry, item_size(entry)),
                (Some(old), Some(new)) if index.keys.key_of(old) == index.keys.key_of(new) => {
                    if old != new {
                        add(new, item_size(old).max(item_size(new)));
                    }
                }
                (Some(old), Some(new)) => {
                    add(old, item_size(old));
                    add(new, item_size(new));
                }
            }
        }
        uses
    }
}
