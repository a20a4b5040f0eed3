//! Chooses the index, key condition and filter that answer a question.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use platform::store::{n, s};
use replica::{CatalogQuery, ListingQuery};
use types::money::Usd;
use types::sort::Sort;

/// The table of listings.
pub(super) const LISTINGS_TABLE: &str = "usual-listings";
/// The table of items.
pub(super) const ITEMS_TABLE: &str = "usual-items";
/// The key of both tables.
pub(super) const ID_ATTRIBUTE: &str = "id";
/// An attribute that has the value [`ALL_VALUE`] in all records of a table.
pub(super) const ALL_ATTRIBUTE: &str = "all";
/// The value of [`ALL_ATTRIBUTE`].
pub(super) const ALL_VALUE: &str = "1";

/// A question in the form in which DynamoDB is asked.
#[derive(Debug, Default)]
pub(in crate::read_model) struct QueryPlan {
    pub(super) table: &'static str,
    pub(super) index: String,
    pub(super) condition: Vec<String>,
    pub(super) filter: Vec<String>,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
    pub(super) is_backward: bool,
}

/// Plans a question to the listings. Their indexes are sorted by time and by price: of all listings, of each item and
/// of each variant.
pub(in crate::read_model) fn plan_listings(query: &ListingQuery) -> QueryPlan {
    let (partition, value) = match (&query.item_id, query.variant_id) {
        (_, Some(variant)) => ("variant_id", variant.to_string()),
        (Some(item), None) => ("item_id", item.clone()),
        (None, None) => (ALL_ATTRIBUTE, ALL_VALUE.to_owned()),
    };
    let (order, is_backward) = match query.sort {
        Sort::Newest => ("created_at", true),
        Sort::PriceAsc => ("price_usd", false),
        Sort::PriceDesc => ("price_usd", true),
    };
    let mut plan = QueryPlan::new(LISTINGS_TABLE, partition, value, order);
    plan.is_backward = is_backward;
    if let Some(range) = plan.range("price_usd", query.min_price, query.max_price) {
        // If the index is sorted by price, the range is a key condition, and nothing outside it is read.
        let place = if order == "price_usd" { &mut plan.condition } else { &mut plan.filter };
        place.push(range);
    }
    if let (Some(item), Some(_)) = (&query.item_id, query.variant_id) {
        let equal = plan.term("item_id", ":item", s(item));
        plan.filter.push(equal);
    }
    plan
}

/// Plans a question to the catalog. Its indexes are sorted by name: of all items and of each kind.
pub(in crate::read_model) fn plan_catalog(query: &CatalogQuery) -> QueryPlan {
    let (partition, value) = match &query.kind {
        Some(kind) => ("kind", kind.clone()),
        None => (ALL_ATTRIBUTE, ALL_VALUE.to_owned()),
    };
    let mut plan = QueryPlan::new(ITEMS_TABLE, partition, value, "name");
    if !query.q.is_empty() {
        plan.name("search");
        plan.values.insert(":q".to_owned(), s(query.q.to_lowercase()));
        plan.filter.push("contains(#search, :q)".to_owned());
    }
    plan
}

/// Returns the name of an index with these keys.
pub(super) fn index(partition: &str, order: &str) -> String {
    format!("{partition}-{order}")
}

impl QueryPlan {
    fn new(table: &'static str, partition: &str, value: String, order: &str) -> Self {
        let mut plan = Self { table, index: index(partition, order), ..Self::default() };
        let equal = plan.term(partition, ":partition", s(value));
        plan.condition.push(equal);
        plan
    }

    /// Defines both names and returns the term `#attribute = :value`.
    fn term(&mut self, attribute: &str, value: &str, is: AttributeValue) -> String {
        self.values.insert(value.to_owned(), is);
        format!("{} = {value}", self.name(attribute))
    }

    /// Returns the term of a range, which includes its bounds, or `None` if there is no bound.
    fn range(&mut self, attribute: &str, min: Option<Usd>, max: Option<Usd>) -> Option<String> {
        let bounds = [(":min", min), (":max", max)].into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        self.values.extend(bounds.map(|(name, bound)| (name.to_owned(), n(bound))));
        let name = min.or(max).map(|_| self.name(attribute))?;
        Some(match (min, max) {
            (Some(_), Some(_)) => format!("{name} BETWEEN :min AND :max"),
            (Some(_), None) => format!("{name} >= :min"),
            _ => format!("{name} <= :max"),
        })
    }

    fn name(&mut self, attribute: &str) -> String {
        let name = format!("#{attribute}");
        self.names.insert(name.clone(), attribute.to_owned());
        name
    }
}
