//! What the limits have to know about the tables: their keys, and the items that are stored now.

use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::types::{GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType};
use dynoxide::{AttributeValue, Database, Item};
use serde_json::Value;

/// The tables, read below their API.
pub(super) struct Tables(pub(super) Database);

/// The keys of a table and of its indexes.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub(super) keys: KeyNames,
    pub(super) indexes: Vec<Index>,
}

/// The attributes that are the keys of a table or index.
#[derive(Clone, Debug)]
pub(super) struct KeyNames {
    pub(super) partition: String,
    pub(super) sort: Option<String>,
}

/// A global secondary index.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) keys: KeyNames,
    /// The attributes that it holds beside all keys, or `None` if it holds every attribute.
    others: Option<Vec<String>>,
}

impl Tables {
    pub(super) fn schema(&self, table: &str) -> Option<Schema> {
        let metadata = self.0.get_table_metadata(table).ok()??;
        let keys: Vec<KeySchemaElement> = serde_json::from_str(&metadata.key_schema).ok()?;
        let indexes: Vec<GlobalSecondaryIndex> =
            metadata.gsi_definitions.map_or_else(|| Some(Vec::new()), |json| serde_json::from_str(&json).ok())?;
        let indexes = indexes.into_iter().map(Index::new).collect::<Option<Vec<_>>>()?;
        Some(Schema { keys: KeyNames::new(&keys)?, indexes })
    }

    /// Returns the item that is stored now.
    pub(super) fn item(&self, table: &str, key: &Item) -> Option<Item> {
        let request = GetItemRequest {
            table_name: table.to_owned(),
            key: key.clone(),
            consistent_read: Some(true),
            ..GetItemRequest::default()
        };
        self.0.get_item(request).ok()?.item
    }
}

impl Schema {
    pub(super) fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }
}

impl KeyNames {
    pub(super) fn new(elements: &[KeySchemaElement]) -> Option<Self> {
        let name = |kind: KeyType| {
            let element = elements.iter().find(|element| element.key_type == kind)?;
            Some(element.attribute_name.clone())
        };
        Some(Self { partition: name(KeyType::HASH)?, sort: name(KeyType::RANGE) })
    }

    /// Returns the key of an item, unless a part of it is missing.
    pub(super) fn key_of(&self, item: &Item) -> Option<Item> {
        let names = std::iter::once(&self.partition).chain(&self.sort);
        names.map(|name| Some((name.clone(), item.get(name)?.clone()))).collect()
    }

    /// Returns the key of an item of an answer, unless a part of it is missing.
    pub(super) fn key_of_json(&self, item: &Value) -> Option<Item> {
        let names = std::iter::once(&self.partition).chain(&self.sort);
        names.map(|name| Some((name.clone(), serde_json::from_value(item.get(name)?.clone()).ok()?))).collect()
    }

    /// Returns an item's partition key as reports show it.
    pub(super) fn partition_of(&self, item: &Item) -> Option<String> {
        item.get(&self.partition).map(text)
    }
}

impl Index {
    fn new(definition: GlobalSecondaryIndex) -> Option<Self> {
        let others = match definition.projection.projection_type {
            Some(ProjectionType::KEYS_ONLY) => Some(Vec::new()),
            Some(ProjectionType::INCLUDE) => definition.projection.non_key_attributes,
            Some(ProjectionType::ALL) | None => None,
        };
        Some(Self { name: definition.index_name, keys: KeyNames::new(&definition.key_schema)?, others })
    }

    /// Returns what the index holds of an item, if it has the index's keys.
    pub(super) fn entry(&self, table: &KeyNames, item: &Item) -> Option<Item> {
        let mut entry = self.keys.key_of(item)?;
        let Some(others) = &self.others else { return Some(item.clone()) };
        entry.extend(table.key_of(item)?);
        entry.extend(others.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))));
        Some(entry)
    }
}

/// Reads an item or a key from a request or an answer.
pub(super) fn item(json: &Value) -> Option<Item> {
    serde_json::from_value(json.clone()).ok()
}

/// Reads the value of a key from a request, as reports show it.
pub(super) fn key_text(json: &Value) -> Option<String> {
    let value: AttributeValue = serde_json::from_value(json.clone()).ok()?;
    Some(text(&value))
}

fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => text.clone(),
        other => other.to_string(),
    }
}
