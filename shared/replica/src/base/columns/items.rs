//! Items in columns. All texts of an item are joined into one.

use std::cmp::Ordering;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use super::{Columnar, Columns, fits, keep_marked, number, unreadable};
use common::ids::ItemId;
use common::layout::Format;
use common::records::PublicItem;
use common::store::StoreError;

/// Separates the texts of an item. None of them contains it, because texts have no control characters.
pub const BETWEEN: char = '\n';

/// Items in columns, without their variants.
#[derive(Default, Serialize, Deserialize)]
pub struct ItemColumns {
    pub kinds: IndexSet<String>,
    kind: Vec<u32>,
    texts: Vec<Box<str>>,
}

impl ItemColumns {
    /// Returns each item's kind, as its index in `kinds`, and its texts.
    pub fn into_rows(self) -> impl Iterator<Item = (usize, Box<str>)> {
        self.kind.into_iter().map(|kind| kind as usize).zip(self.texts)
    }
}

impl Columnar for PublicItem {
    type Columns = ItemColumns;
    const PART: Format = Format::first("base part of catalog");
    const DELTA: Format = Format::first("delta of catalog");

    /// The catalog's own order, so that building its index from a base needs no sorting.
    fn base_order(&self, other: &Self) -> Ordering {
        self.catalog_key().cmp(&other.catalog_key())
    }
}

impl Columns for ItemColumns {
    type Record = PublicItem;

    fn push(&mut self, item: &PublicItem) {
        self.kind.push(number(&mut self.kinds, item.kind.as_str()) as u32);
        self.texts.push(texts(item));
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn retain(&mut self, mut keep: impl FnMut(&ItemId) -> bool) {
        let id = |texts: &str| texts.split(BETWEEN).next().and_then(|id| id.parse().ok());
        let marks: Vec<bool> = self.texts.iter().map(|texts| id(texts).is_some_and(|id| keep(&id))).collect();
        keep_marked(&mut self.kind, &marks);
        keep_marked(&mut self.texts, &marks);
    }

    fn is_sound(&self) -> bool {
        // Every item has a kind, so entries are plain indexes and none stands for a missing value.
        fits(&self.kind, self.len(), self.kinds.len().saturating_sub(1)) && (self.is_empty() || !self.kinds.is_empty())
    }

    fn records(&self) -> Result<Vec<PublicItem>, StoreError> {
        let kinds = self.kind.iter().map(|kind| self.kinds.get_index(*kind as usize));
        let rows = kinds.zip(&self.texts);
        rows.map(|(kind, texts)| item(kind?, texts)).map(|item| item.ok_or_else(|| unreadable("catalog"))).collect()
    }
}

/// Joins an item's id, name, slug and image into one text. Missing ones are empty.
pub fn texts(item: &PublicItem) -> Box<str> {
    let name = item.name.as_ref().map_or("", |name| name.as_str());
    let slug = item.slug.as_ref().map_or("", |slug| slug.as_str());
    let image = item.image.as_ref().map_or("", |image| image.as_str());
    format!("{}{BETWEEN}{name}{BETWEEN}{slug}{BETWEEN}{image}", item.id).into()
}

/// Makes an item from its kind and its joined texts.
pub fn item(kind: &str, texts: &str) -> Option<PublicItem> {
    let mut texts = texts.split(BETWEEN);
    let id = texts.next()?.parse().ok()?;
    let mut text = || texts.next().filter(|text| !text.is_empty());
    Some(PublicItem {
        id,
        kind: kind.parse().ok()?,
        name: text().and_then(|name| name.parse().ok()),
        slug: text().and_then(|slug| slug.parse().ok()),
        image: text().and_then(|image| image.parse().ok()),
    })
}
