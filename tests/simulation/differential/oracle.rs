//! The oracle: the newest version of each record in one map, and each answer computed anew from all of them. It follows
//! `docs/specification.md`, and shares no code with what it judges.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::records::{Balance, Cents, Change, Item, Key, Listing, Marketplace, Millis, Order, Quote, Record, Variant};

/// A quote counts for this long.
const DAY: i64 = 24 * 3_600_000;
/// Items with more variants are not shown with prices.
const MAX_PRICED: usize = 25;

#[derive(Clone, Copy, Debug)]
pub(super) struct Paging {
    pub(super) page: usize,
    pub(super) page_size: Option<usize>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Catalog {
        q: Option<String>,
        kind: Option<&'static str>,
        paging: Paging,
    },
    Listings {
        item_id: Option<String>,
        variant_id: Option<Uuid>,
        min_price: Option<Cents>,
        max_price: Option<Cents>,
        sort: Option<&'static str>,
        paging: Paging,
    },
    Item {
        id: String,
        includes_prices: bool,
    },
    Prices(Uuid),
    Marketplaces,
    Orders(Uuid, Paging),
    Balance(Uuid),
    /// With the answer, which never changes.
    Me(Uuid, String),
}

impl Question {
    /// Returns the name of the function that answers it.
    pub(super) const fn function(&self) -> &'static str {
        match self {
            Self::Catalog { .. } => "catalog",
            Self::Listings { .. } => "listings",
            Self::Item { .. } => "item",
            Self::Prices(_) => "prices",
            Self::Marketplaces => "marketplaces",
            Self::Orders(..) => "orders",
            Self::Balance(_) => "balance",
            Self::Me(..) => "me",
        }
    }

    /// Returns the account that must ask it, if it is about one.
    pub(super) const fn account(&self) -> Option<Uuid> {
        match self {
            Self::Orders(account, _) | Self::Balance(account) | Self::Me(account, _) => Some(*account),
            _ => None,
        }
    }

    pub(super) fn path(&self) -> String {
        let path = match self {
            Self::Item { id, .. } => format!("items/{id}"),
            Self::Prices(variant) => format!("prices/{variant}"),
            Self::Balance(_) => "wallet/balance".to_owned(),
            _ => self.function().to_owned(),
        };
        let query = match self {
            Self::Catalog { q, kind, paging } => {
                paging.query([("q", q.clone()), ("kind", kind.map(str::to_owned))].into())
            }
            Self::Listings { item_id, variant_id, min_price, max_price, sort, paging } => paging.query(vec![
                ("item_id", item_id.clone()),
                ("variant_id", variant_id.map(|id| id.to_string())),
                ("min_price", min_price.map(|price| price.to_string())),
                ("max_price", max_price.map(|price| price.to_string())),
                ("sort", sort.map(str::to_owned)),
            ]),
            Self::Orders(_, paging) => paging.query(Vec::new()),
            Self::Item { includes_prices: true, .. } => "?include=prices".to_owned(),
            _ => String::new(),
        };
        format!("/v1/public/{path}{query}")
    }

    /// Returns whether the answer may depend on a record.
    pub(super) fn concerns(&self, change: &Change) -> bool {
        match (self, &change.key) {
            (Self::Catalog { .. }, Key::Item(_))
            | (Self::Listings { .. }, Key::Listing(_))
            | (Self::Item { includes_prices: true, .. }, Key::Quote(..))
            | (Self::Item { includes_prices: true, .. } | Self::Prices(_) | Self::Marketplaces, Key::Marketplace(_)) => {
                true
            }
            (Self::Item { id, .. }, Key::Item(changed)) => id == changed,
            (Self::Prices(variant), Key::Quote(changed, _)) => variant == changed,
            (Self::Balance(account), Key::Balance(changed)) => account == changed,
            (Self::Orders(account, _), Key::Order(_)) => {
                matches!(&change.record, Record::Order(changed, _) if account == changed)
            }
            _ => false,
        }
    }
}

impl Paging {
    fn query(self, mut parameters: Vec<(&str, Option<String>)>) -> String {
        parameters.push(("page", (self.page > 1).then(|| self.page.to_string())));
        parameters.push(("page_size", self.page_size.map(|size| size.to_string())));
        let mut query = String::new();
        for (name, value) in parameters.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            write!(query, "{}{name}=", if query.is_empty() { '?' } else { '&' }).unwrap();
            value.bytes().for_each(|byte| write!(query, "%{byte:02X}").unwrap());
        }
        query
    }

    fn slice<T: Serialize>(self, all: &[T]) -> String {
        let size = self.page_size.unwrap_or(50);
        let items: Vec<&T> = all.iter().skip((self.page - 1) * size).take(size).collect();
        let (page, total) = (self.page, all.len());
        format!(r#"{{"items":{},"page":{page},"page_size":{size},"total":{total}}}"#, text(&items))
    }
}

fn text(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap()
}

/// Everything that was reported.
#[derive(Clone, Default)]
pub(super) struct Oracle(BTreeMap<Key, Rc<Change>>);

impl Oracle {
    pub(super) fn apply(&mut self, change: &Rc<Change>) {
        if self.0.get(&change.key).is_none_or(|known| change.version > known.version) {
            self.0.insert(change.key.clone(), Rc::clone(change));
        }
    }

    /// Returns the newest version of a record.
    pub(super) fn newest(&self, key: &Key) -> Option<&Change> {
        self.0.get(key).map(Rc::as_ref)
    }

    /// Returns the status and the body of the answer.
    pub(super) fn answer(&self, question: &Question, now: Millis) -> (u16, String) {
        let body = match question {
            Question::Catalog { q, kind, paging } => {
                let folded = q.as_deref().filter(|q| !q.is_empty()).map(fold);
                let finds = |item: &&Item| match (&folded, &item.name) {
                    (Some(folded), Some(name)) => fold(name).contains(folded),
                    (wanted, _) => wanted.is_none(),
                };
                let is_kind = |item: &&Item| kind.is_none_or(|kind| item.kind == kind);
                let mut found: Vec<&Item> = self.items().filter(is_kind).filter(finds).collect();
                found.sort_by_key(|item| (item.name.is_none(), &item.name, &item.id));
                paging.slice(&found)
            }
            Question::Listings { item_id, variant_id, min_price, max_price, sort, paging } => {
                let matches = |listing: &&Listing| {
                    item_id.as_ref().is_none_or(|id| listing.item_id.as_ref() == Some(id))
                        && variant_id.is_none_or(|id| listing.variant_id == Some(id))
                        && min_price.is_none_or(|price| listing.price_usd >= price)
                        && max_price.is_none_or(|price| listing.price_usd <= price)
                };
                let mut found: Vec<&Listing> = self.listings().filter(matches).collect();
                found.sort_by_key(|listing| (Reverse(listing.created_at), listing.id));
                match *sort {
                    Some("price_asc") => found.sort_by_key(|listing| listing.price_usd),
                    Some("price_desc") => found.sort_by_key(|listing| Reverse(listing.price_usd)),
                    _ => {}
                }
                paging.slice(&found)
            }
            Question::Orders(account, paging) => {
                let mut found: Vec<&Order> = self.orders(*account).collect();
                found.sort_by_key(|order| Reverse((order.created_at, order.id)));
                paging.slice(&found)
            }
            Question::Item { id, includes_prices } => return self.item(id, *includes_prices, now),
            Question::Prices(variant) => match self.prices(*variant, now) {
                Some(prices) => text(&prices),
                None => return (404, not_found("prices", "variant_id", &variant.to_string())),
            },
            Question::Marketplaces => text(&self.marketplaces()),
            Question::Balance(account) => text(&self.balance(*account)),
            Question::Me(_, answer) => answer.clone(),
        };
        (200, body)
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.0.values().filter_map(|change| if let Record::Item(item) = &change.record { item.as_ref() } else { None })
    }

    fn listings(&self) -> impl Iterator<Item = &Listing> {
        self.0.values().filter_map(|change| match &change.record {
            Record::Listing(listing, "active") => Some(listing),
            _ => None,
        })
    }

    fn orders(&self, account: Uuid) -> impl Iterator<Item = &Order> {
        self.0.values().filter_map(move |change| match &change.record {
            Record::Order(owner, order) if *owner == account => Some(order),
            _ => None,
        })
    }

    fn marketplaces(&self) -> Vec<&Marketplace> {
        let changes = self.0.values().map(|change| &change.record);
        changes.filter_map(|record| if let Record::Marketplace(found) = record { Some(found) } else { None }).collect()
    }

    fn balance(&self, account: Uuid) -> Balance {
        let zero = Cents(0);
        match self.newest(&Key::Balance(account)).map(|change| &change.record) {
            Some(Record::Balance(balance)) => *balance,
            _ => Balance {
                available_usd: zero,
                store_usd: zero,
                trade_usd: zero,
                withdrawable_usd: zero,
                held_usd: zero,
                escrow_usd: zero,
            },
        }
    }

    fn item(&self, id: &str, includes_prices: bool, now: Millis) -> (u16, String) {
        let Some(item) = self.items().find(|item| item.id == id) else {
            return (404, not_found("items", "id", id));
        };
        if includes_prices && item.variants.len() > MAX_PRICED {
            let params = json!({"max": MAX_PRICED, "found": item.variants.len()});
            let field = format!(r#"{{"field":"include","code":"too_many","params":{params}}}"#);
            let error = format!(r#"{{"code":"request.invalid","params":{{}},"fields":[{field}]}}"#);
            return (400, format!(r#"{{"error":{error}}}"#));
        }
        let variants = item.variants.iter().map(|variant| PricedVariant {
            variant,
            prices: includes_prices.then(|| IncludedPrices(self.prices(variant.variant_id, now))),
        });
        (200, text(&ItemWithVariants { item, variants: variants.collect() }))
    }

    fn prices(&self, variant: Uuid, now: Millis) -> Option<Prices> {
        let is_enabled =
            |key: &str| self.marketplaces().iter().any(|marketplace| marketplace.key == key && marketplace.enabled);
        let counts = |quote: &&Quote| {
            quote.variant_id == variant && quote.observed_at.0 >= now.0 - DAY && is_enabled(&quote.marketplace)
        };
        let quotes = self.0.values().filter_map(|change| match &change.record {
            Record::Quote(quote) => Some(quote),
            _ => None,
        });
        let quotes: Vec<&Quote> = quotes.filter(counts).filter(|quote| !quote.asks.is_empty()).collect();
        let mut source_keys: Vec<String> = quotes.iter().map(|quote| quote.marketplace.clone()).collect();
        source_keys.sort();
        let mut asks: Vec<u64> = quotes.iter().flat_map(|quote| &quote.asks).map(|ask| ask.0).collect();
        asks.sort_unstable();
        let (count, lowest) = (asks.len() as u64, *asks.first()?);
        let twice_median = asks[(asks.len() - 1) / 2] + asks[asks.len() / 2];
        let is_typical = |ask: &&u64| **ask * 4 >= twice_median && **ask <= twice_median;
        let typical = asks.iter().find(is_typical).filter(|_| asks.len() >= 3);
        Some(Prices {
            variant_id: variant,
            sample_size: count,
            source_keys,
            lowest_usd: Cents(lowest),
            mean_usd: half_even(asks.iter().sum(), count),
            median_usd: half_even(twice_median, 2),
            recommended_list_usd: typical.map(|ask| Cents(ask.saturating_sub(1).max(1))),
        })
    }
}

#[derive(Serialize)]
struct ItemWithVariants<'a> {
    #[serde(flatten)]
    item: &'a Item,
    variants: Vec<PricedVariant<'a>>,
}

#[derive(Serialize)]
struct PricedVariant<'a> {
    #[serde(flatten)]
    variant: &'a Variant,
    /// Absent if they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<IncludedPrices>,
}

/// Null if there are none.
#[derive(Serialize)]
struct IncludedPrices(Option<Prices>);

#[derive(Serialize)]
struct Prices {
    variant_id: Uuid,
    sample_size: u64,
    source_keys: Vec<String>,
    lowest_usd: Cents,
    mean_usd: Cents,
    median_usd: Cents,
    recommended_list_usd: Option<Cents>,
}

fn not_found(what: &str, parameter: &str, id: &str) -> String {
    json!({"error": {"code": format!("{what}.not_found"), "params": {parameter: id}}}).to_string()
}

/// Divides, and rounds a half to the even side.
fn half_even(dividend: u64, divisor: u64) -> Cents {
    let (quotient, twice_rest) = (dividend / divisor, dividend % divisor * 2);
    let is_up = twice_rest > divisor || twice_rest == divisor && quotient % 2 == 1;
    Cents(quotient + u64::from(is_up))
}

/// The characters of names that are not compared as they are, each with what it is compared as.
const FOLDED: [(&str, &str); 16] = [
    ("\u{a0}", " "),
    ("i\u{307}", "i"),
    ("I\u{307}", "i"),
    ("İ", "i"),
    ("e\u{301}", "é"),
    ("E\u{301}", "é"),
    ("É", "é"),
    ("a\u{308}", "ä"),
    ("A\u{308}", "ä"),
    ("Ä", "ä"),
    ("ß", "ss"),
    ("ẞ", "ss"),
    ("Σ", "σ"),
    ("ς", "σ"),
    ("Ａ", "ａ"),
    ("Ж", "ж"),
];

/// Returns what a text is compared as, if it is made of letters of ASCII, of signs, and of [`FOLDED`].
fn fold(text: &str) -> String {
    let spelled = |text: String, (from, to): &(&str, &str)| if text.is_ascii() { text } else { text.replace(from, to) };
    FOLDED.iter().fold(text.to_owned(), spelled).to_ascii_lowercase()
}
