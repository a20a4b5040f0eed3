//! The usual way to answer the same questions: DynamoDB's own indexes, a filter, a count over the whole result for the
//! total, and skipping to the page.
//!
//! It gets every advantage that it can have here. Each sort order of everything, of an item and of a variant has an
//! index of its own. An index holds only keys and the attributes that filters need, so the megabyte that one call can
//! read holds ten thousand entries. If the index is sorted by price, a price range is a key condition. The walk that
//! counts also finds the page, and the page's records are fetched by one call. Reads are eventually consistent, which
//! halves their price. All entries of an index lie in one partition; on AWS that limits a walk to 24 MB per second.

use std::collections::HashMap;
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use local::meter::CostMeter;
use platform::store::{Row, StoreError, n, s};
use replica::{CatalogQuery, ListingQuery};
use serde::Serialize;
use types::money::Usd;
use types::paging::Paging;
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

/// More entries than a megabyte holds, so that this limit never ends a page. Without any limit, the embedded DynamoDB
/// would read the rest of the partition for each page.
const MAX_PAGE_ENTRIES: i32 = 20_000;

/// What one question costs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) wall_ms: f64,
    pub(super) calls: u64,
    pub(super) read_units: f64,
}

/// Asks the tables that the usual way needs.
pub(super) struct Asker {
    client: Client,
    meter: CostMeter,
}

/// A number of matches, and where the walk stood when it had counted them.
type Mark = (usize, Option<Row>);

impl Asker {
    pub(super) fn new(client: &Client) -> Self {
        let meter = CostMeter::default();
        Self { client: meter.attach(client), meter }
    }

    /// Returns the page's records, the total, and what they cost.
    pub(super) async fn ask(&self, plan: &QueryPlan, paging: Paging) -> Result<(Vec<Row>, usize, Cost), StoreError> {
        self.meter.take();
        let began = Instant::now();
        let (total, mark) = self.count(plan, paging.skip()).await?;
        let keys = if total > paging.skip() { self.keys(plan, paging, mark).await? } else { Vec::new() };
        let page = if keys.is_empty() { Vec::new() } else { self.records(plan, keys).await? };
        let wall_ms = began.elapsed().as_secs_f64() * 1e3;
        let bill = self.meter.take();
        Ok((page, total, Cost { wall_ms, calls: bill.all_calls(), read_units: bill.read_units }))
    }

    /// Counts everything that matches. Returns the total, and the mark from which to look for the page: that of the
    /// last call that began before it.
    async fn count(&self, plan: &QueryPlan, skip: usize) -> Result<(usize, Mark), StoreError> {
        let (mut total, mut mark, mut start) = (0, (0, None), None);
        loop {
            if total <= skip {
                mark = (total, start.clone());
            }
            let counted = self.query(plan).select(Select::Count).set_exclusive_start_key(start).send().await?;
            total += usize::try_from(counted.count).unwrap_or_default();
            start = counted.last_evaluated_key;
            if start.is_none() {
                return Ok((total, mark));
            }
        }
    }

    /// Returns the keys of the page's records.
    async fn keys(&self, plan: &QueryPlan, paging: Paging, (counted, mut start): Mark) -> Result<Vec<Row>, StoreError> {
        let (skip, mut keys) = (paging.skip() - counted, Vec::new());
        loop {
            let mut query = self.query(plan).set_exclusive_start_key(start);
            if plan.filter.is_empty() {
                let missing = i32::try_from(skip + paging.take() - keys.len());
                query = query.limit(missing.unwrap_or(MAX_PAGE_ENTRIES).min(MAX_PAGE_ENTRIES));
            }
            let found = query.send().await?;
            keys.extend(found.items.unwrap_or_default());
            start = found.last_evaluated_key;
            if keys.len() >= skip + paging.take() || start.is_none() {
                return Ok(keys.into_iter().skip(skip).take(paging.take()).collect());
            }
        }
    }

    /// Returns the records, in no particular order. Whoever shows them would sort them by the order of the keys.
    async fn records(&self, plan: &QueryPlan, keys: Vec<Row>) -> Result<Vec<Row>, StoreError> {
        let keys = keys.into_iter().map(|mut key| key.remove_entry(ID_ATTRIBUTE).into_iter().collect()).collect();
        let mut unread = KeysAndAttributes::builder().set_keys(Some(keys)).build().map(Some)?;
        let mut records = Vec::new();
        while let Some(keys) = unread.take() {
            let got = self.client.batch_get_item().request_items(plan.table, keys).send().await?;
            records.extend(got.responses.unwrap_or_default().into_values().flatten());
            unread = got.unprocessed_keys.unwrap_or_default().into_values().next();
        }
        Ok(records)
    }

    fn query(&self, plan: &QueryPlan) -> QueryFluentBuilder {
        let query = self.client.query().table_name(plan.table).index_name(&plan.index);
        let filter = (!plan.filter.is_empty()).then(|| plan.filter.join(" AND "));
        query
            .key_condition_expression(plan.condition.join(" AND "))
            .set_filter_expression(filter)
            .set_expression_attribute_names(Some(plan.names.clone()))
            .set_expression_attribute_values(Some(plan.values.clone()))
            .scan_index_forward(!plan.is_backward)
            .limit(MAX_PAGE_ENTRIES)
    }
}

/// A question in the form in which DynamoDB is asked.
#[derive(Debug, Default)]
pub(super) struct QueryPlan {
    pub(super) table: &'static str,
    pub(super) index: String,
    pub(super) condition: Vec<String>,
    pub(super) filter: Vec<String>,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
    pub(super) is_backward: bool,
}

/// Returns the name of an index with these keys.
pub(super) fn index(partition: &str, order: &str) -> String {
    format!("{partition}-{order}")
}

impl QueryPlan {
    /// Plans a question to the listings. Their indexes are sorted by time and by price: of all listings, of each item and
    /// of each variant.
    pub(super) fn for_listings(query: &ListingQuery) -> Self {
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
        let mut plan = Self::new(LISTINGS_TABLE, partition, value, order);
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
    pub(super) fn for_catalog(query: &CatalogQuery) -> Self {
        let (partition, value) = match &query.kind {
            Some(kind) => ("kind", kind.clone()),
            None => (ALL_ATTRIBUTE, ALL_VALUE.to_owned()),
        };
        let mut plan = Self::new(ITEMS_TABLE, partition, value, "name");
        if !query.q.is_empty() {
            plan.name("search");
            plan.values.insert(":q".to_owned(), s(query.q.to_lowercase()));
            plan.filter.push("contains(#search, :q)".to_owned());
        }
        plan
    }

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
