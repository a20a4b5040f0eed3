//! The usual way to answer the same questions: DynamoDB's own indexes, a filter, a count over the whole result for the
//! total, and skipping to the page.
//!
//! It gets every advantage that it can have here. Each sort order of everything, of an item and of a variant has an
//! index of its own. An index holds only keys and the attributes that filters need, so the megabyte that one call can
//! read holds ten thousand entries. If the index is sorted by price, a price range is a key condition. The walk that
//! counts also finds the page, and the page's records are fetched by one call. Reads are eventually consistent, which
//! halves their price. All entries of an index lie in one partition; on AWS that limits a walk to 24 MB per second.
//!
//! A process of its own fills these tables and then serves them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use common::aws::{Environment, Patience};
use common::money::Usd;
use common::paging::{Paging, Sort};
use common::records::{PublicItemDetail, PublicListing};
use common::store::{Row, StoreError, n, s};
use common::timestamp::Timestamp;
use dynoxide::{AttributeValue as StoredValue, Database, ImportOptions, Item};
use local::aws::AwsSide;
use local::demo::LargeMarket;
use local::environment::Variables;
use local::meter::CostMeter;
use replica::{CatalogQuery, ListingQuery};
use serde::Serialize;
use serde_json::{Value, json};
use terminal::Bar;
use tokio::process::Child;

use crate::figures::text;
use crate::stack::{parent_ended, start_child};

/// The table of listings.
const LISTINGS_TABLE: &str = "usual-listings";
/// The table of items.
const ITEMS_TABLE: &str = "usual-items";
/// The key of both tables.
const ID_ATTRIBUTE: &str = "id";
/// An attribute that has the value [`ALL_VALUE`] in all records of a table.
const ALL_ATTRIBUTE: &str = "all";
/// The value of [`ALL_ATTRIBUTE`].
const ALL_VALUE: &str = "1";

/// More entries than a megabyte holds, so that this limit never ends a page. Without any limit, the embedded DynamoDB
/// would read the rest of the partition for each page.
const MAX_PAGE_ENTRIES: i32 = 20_000;

/// The name of the subcommand.
const SUBCOMMAND: &str = "usual-side";
/// The number of items, and of listings, that are stored at a time.
const CHUNK_RECORDS: u64 = 10_000;

/// What one question costs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) wall_ms: f64,
    pub(super) calls: u64,
    pub(super) read_units: f64,
}

/// A number of matches, and where the walk stood when it had counted them.
type Mark = (usize, Option<Row>);

/// The running process with the tables that the usual way needs. It ends when this is dropped.
pub(super) struct UsualSide {
    client: Client,
    meter: CostMeter,
    _process: Child,
}

impl UsualSide {
    /// Starts the process and waits until it holds the market.
    pub(super) async fn start(market: &LargeMarket, bar: &Bar) -> Result<Self, String> {
        let (size, now) = (market.size().to_string(), market.now().millis().to_string());
        let (process, mut lines) = start_child([SUBCOMMAND, &size, &now])?;
        while let Some(line) = lines.next_line().await.map_err(text)? {
            if let Ok(stored) = line.parse() {
                bar.advance(stored);
                continue;
            }
            let variables = Variables::new(&line);
            let meter = CostMeter::default();
            let environment = Environment::read(&|name| variables.get(name)).map_err(text)?;
            let client = environment.watched_by(meter.interceptor()).dynamodb(Patience::Bulk);
            return Ok(Self { client, meter, _process: process });
        }
        Err("the usual side did not start".to_owned())
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
    table: &'static str,
    index: String,
    condition: Vec<String>,
    filter: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
    is_backward: bool,
}

/// Returns the name of an index with these keys.
fn index(partition: &str, order: &str) -> String {
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

/// Runs as that process until standard input ends. Prints after each chunk how many records that were, and in the end
/// the URL that it serves.
pub(crate) async fn run(size: u64, now_millis: i64) -> Result<(), String> {
    let database = Database::memory().map_err(text)?;
    for table in [listings_table(), items_table()] {
        database.create_table(serde_json::from_value(table).map_err(text)?).map_err(text)?;
    }
    let market = LargeMarket::new(size, Timestamp::from_millis(now_millis));
    for start in (0..size).step_by(CHUNK_RECORDS as usize) {
        let numbers = || start..(start + CHUNK_RECORDS).min(size);
        let listings = numbers().filter_map(|number| market.listing(number)).map(|record| listing(&record)).collect();
        database.import_items(LISTINGS_TABLE, listings, ImportOptions::default()).map_err(text)?;
        let items = numbers().filter_map(|number| market.item(number)).map(item).collect();
        database.import_items(ITEMS_TABLE, items, ImportOptions::default()).map_err(text)?;
        println!("{}", numbers().count() * 2);
    }
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let aws = AwsSide::with_tables(any_port, database, None).await.map_err(text)?;
    println!("{}", aws.endpoint_url);
    parent_ended().await
}

fn listings_table() -> Value {
    let all =
        [(ALL_ATTRIBUTE, &["price_usd"][..]), ("item_id", &["price_usd"]), ("variant_id", &["item_id", "price_usd"])];
    let indexes = all.into_iter().flat_map(|(partition, filters)| {
        [("created_at", filters), ("price_usd", &filters[..filters.len() - 1])]
            .map(|(order, filters)| global_index(partition, order, filters))
    });
    table(
        LISTINGS_TABLE,
        &[ID_ATTRIBUTE, ALL_ATTRIBUTE, "item_id", "variant_id", "created_at"],
        &["price_usd"],
        &indexes.collect::<Vec<_>>(),
    )
}

fn items_table() -> Value {
    let indexes = [ALL_ATTRIBUTE, "kind"].map(|partition| global_index(partition, "name", &["search"]));
    table(ITEMS_TABLE, &[ID_ATTRIBUTE, ALL_ATTRIBUTE, "kind", "name"], &[], &indexes)
}

fn table(name: &str, texts: &[&str], numbers: &[&str], indexes: &[Value]) -> Value {
    let define = |kind: &'static str| move |name: &&str| json!({"AttributeName": name, "AttributeType": kind});
    let attributes: Vec<Value> = texts.iter().map(define("S")).chain(numbers.iter().map(define("N"))).collect();
    json!({
        "TableName": name,
        "KeySchema": [{"AttributeName": ID_ATTRIBUTE, "KeyType": "HASH"}],
        "AttributeDefinitions": attributes,
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": indexes,
    })
}

fn global_index(partition: &str, order: &str, filters: &[&str]) -> Value {
    let projection = match filters {
        [] => json!({"ProjectionType": "KEYS_ONLY"}),
        filters => json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": filters}),
    };
    json!({
        "IndexName": index(partition, order),
        "KeySchema": [
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": order, "KeyType": "RANGE"},
        ],
        "Projection": projection,
    })
}

fn listing(listing: &PublicListing) -> Item {
    let Value::Object(fields) = json!(listing) else { return Item::new() };
    let stored = fields.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Value::String(price) if name == "price_usd" => StoredValue::N(price),
            Value::String(text) => StoredValue::S(text),
            Value::Bool(flag) => StoredValue::BOOL(flag),
            _ => return None,
        };
        Some((name, value))
    });
    stored.chain([(ALL_ATTRIBUTE.to_owned(), StoredValue::S(ALL_VALUE.to_owned()))]).collect()
}

fn item(detail: PublicItemDetail) -> Item {
    let item = detail.item;
    texts([
        (ID_ATTRIBUTE, Some(item.id.to_string())),
        (ALL_ATTRIBUTE, Some(ALL_VALUE.to_owned())),
        ("kind", Some(item.kind.to_string())),
        ("search", item.name.as_ref().map(|name| name.as_str().to_lowercase())),
        ("name", item.name.map(|name| name.to_string())),
        ("slug", item.slug.map(|slug| slug.to_string())),
        ("image", item.image.map(|image| image.to_string())),
    ])
}

fn texts<const N: usize>(attributes: [(&str, Option<String>); N]) -> Item {
    let attributes = attributes.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
    attributes.map(|(name, text)| (name, StoredValue::S(text))).collect()
}
