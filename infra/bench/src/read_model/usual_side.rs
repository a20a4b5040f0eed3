//! The tables of the usual way. A process of their own fills them and then serves them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use dynoxide::{AttributeValue, Database, ImportOptions, Item};
use local::aws::AwsSide;
use local::demo::LargeMarket;
use local::environment::Variables;
use platform::aws::{Environment, Patience};
use serde_json::{Value, json};
use terminal::Bar;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use types::records::{PublicItemDetail, PublicListing};
use types::timestamp::Timestamp;

use super::usual::{ALL_ATTRIBUTE, ALL_VALUE, Asker, ID_ATTRIBUTE, ITEMS_TABLE, LISTINGS_TABLE, index};
use crate::figures::text;
use crate::stack::{child_command, parent_ended};

/// The name of the subcommand.
const SUBCOMMAND: &str = "usual-side";
/// The number of items, and of listings, that are stored at a time.
const CHUNK_RECORDS: u64 = 10_000;

/// The running process. It ends when this is dropped.
pub(super) struct UsualSide {
    pub(super) asker: Asker,
    _process: Child,
}

impl UsualSide {
    /// Starts the process and waits until it holds the market.
    pub(super) async fn start(market: &LargeMarket, bar: &Bar) -> Result<Self, String> {
        let mut command = child_command(SUBCOMMAND)?;
        command.args([market.size().to_string(), market.now().millis().to_string()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(text)?;
        let stdout = process.stdout.take().ok_or("the usual side has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await.map_err(text)? {
            if let Ok(stored) = line.parse() {
                bar.advance(stored);
                continue;
            }
            let variables = Variables::new(&line);
            let environment = Environment::read(&|name| variables.get(name)).map_err(text)?;
            return Ok(Self { asker: Asker::new(&environment.dynamodb(Patience::Bulk)), _process: process });
        }
        Err("the usual side did not start".to_owned())
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
        let listings = numbers().filter_map(|number| market.listing(number)).map(listing).collect();
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

fn listing(listing: PublicListing) -> Item {
    let PublicListing { id, id8, price_usd, kind, is_auction, created_at, item_id, variant_id, market_hash_name } =
        listing;
    let kind = if kind == types::records::ListingKind::Bot { "bot" } else { "p2p" };
    let mut item = texts([
        (ID_ATTRIBUTE, Some(id.to_string())),
        (ALL_ATTRIBUTE, Some(ALL_VALUE.to_owned())),
        ("id8", Some(id8.to_string())),
        ("kind", Some(kind.to_owned())),
        ("created_at", Some(created_at.to_string())),
        ("item_id", item_id.map(|id| id.to_string())),
        ("variant_id", variant_id.map(|id| id.to_string())),
        ("market_hash_name", market_hash_name.map(|name| name.to_string())),
    ]);
    item.insert("price_usd".to_owned(), AttributeValue::N(price_usd.to_string()));
    item.insert("is_auction".to_owned(), AttributeValue::BOOL(is_auction));
    item
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
    attributes.map(|(name, text)| (name, AttributeValue::S(text))).collect()
}
