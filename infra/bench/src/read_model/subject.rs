//! The subjects of measurements: the two replicas, the endpoints that answer from them, and the kinds of questions that
//! they are asked.

use api::Handler;
use common::aws::Missing;
use common::money::Usd;
use common::paging::{Paging, Sort};
use common::runtime::Service;
use local::demo::{LargeMarket, variant_id};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use replica::{Catalog, CatalogQuery, ListingQuery, Listings, View};
use serde::Serialize;

use super::usual::QueryPlan;
use crate::cli::ReplicaStream;

/// One of the two replicas.
pub(super) trait Subject {
    const STREAM: ReplicaStream;
    /// The path of its endpoint.
    const PATH: &'static str;
    /// Its index.
    type View: View;
    /// A question to the index.
    type Query;

    /// Returns every kind of question.
    fn kinds(market: &LargeMarket) -> Vec<QuestionKind<Self::Query>>;

    /// Asks the index for a page and returns the total.
    fn page(view: &Self::View, query: &Self::Query, paging: Paging) -> usize;

    /// Returns the question as the query of a URL, without the page.
    fn parameters(query: &Self::Query) -> String;

    /// Returns the question as DynamoDB's own indexes are asked it.
    fn plan(query: &Self::Query) -> QueryPlan;

    /// Builds the function.
    fn handler(service: &Service<'_>) -> Result<Box<dyn Handler>, Missing>;
}

/// A kind of question, and several questions of that kind.
pub(super) struct QuestionKind<Q> {
    pub(super) name: String,
    pub(super) queries: Vec<Q>,
}

/// Which page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Depth {
    First,
    Middle,
    Last,
}

impl Depth {
    pub(super) const ALL: [Self; 3] = [Self::First, Self::Middle, Self::Last];

    /// Returns the page at this depth of `total` records, with the largest page size.
    pub(super) fn paging(self, total: usize) -> Paging {
        let pages = i64::try_from(total.div_ceil(Paging::MAX_SIZE as usize)).unwrap_or(i64::MAX);
        let page = match self {
            Self::First => 1,
            Self::Middle => pages / 2,
            Self::Last => pages,
        };
        Paging { page: page.max(1), page_size: Paging::MAX_SIZE }
    }
}

/// The number of questions of each kind. They are about the items with the most listings, and prices from the whole
/// range.
const QUESTIONS_PER_KIND: u64 = 8;

/// The name of a filter, and a function that makes the filter from the number of a question.
type Filter = (&'static str, fn(&LargeMarket, u64) -> ListingQuery);

const FILTERS: [Filter; 8] = [
    ("all", |_, _| ListingQuery::default()),
    ("item", |market, number| of_item(market, number)),
    ("variant", |_, number| ListingQuery { variant_id: Some(variant_id(number, number % 5)), ..Default::default() }),
    ("item, variant", |market, number| ListingQuery {
        variant_id: Some(variant_id(number, number % 5)),
        ..of_item(market, number)
    }),
    ("from a price", |_, number| ListingQuery { min_price: Some(price(2 * number)), ..Default::default() }),
    ("up to a price", |_, number| ListingQuery { max_price: Some(price(2 * number)), ..Default::default() }),
    ("price range", |_, number| in_range(ListingQuery::default(), number)),
    ("item, price range", |market, number| in_range(of_item(market, number), number)),
];

fn of_item(market: &LargeMarket, number: u64) -> ListingQuery {
    ListingQuery { item_id: market.item_id(number).map(|id| id.to_string()), ..ListingQuery::default() }
}

fn in_range(query: ListingQuery, number: u64) -> ListingQuery {
    ListingQuery { min_price: Some(price(number)), max_price: Some(price(number + 4)), ..query }
}

fn price(octave: u64) -> Usd {
    Usd::from_cents(8 << octave)
}

/// The listings as a subject of measurements.
pub(super) struct ListingsSubject;

impl Subject for ListingsSubject {
    const STREAM: ReplicaStream = ReplicaStream::Listings;
    const PATH: &'static str = "/v1/public/listings";
    type View = Listings;
    type Query = ListingQuery;

    fn kinds(market: &LargeMarket) -> Vec<QuestionKind<ListingQuery>> {
        let kind = |sort: Sort, (filter, make): Filter| QuestionKind {
            name: format!("{sort}, {filter}"),
            queries: (0..QUESTIONS_PER_KIND).map(|number| ListingQuery { sort, ..make(market, number) }).collect(),
        };
        Sort::ALL.into_iter().flat_map(|sort| FILTERS.into_iter().map(move |filter| kind(sort, filter))).collect()
    }

    fn page(view: &Listings, query: &ListingQuery, paging: Paging) -> usize {
        std::hint::black_box(view.page(query, paging)).1
    }

    fn parameters(query: &ListingQuery) -> String {
        let parameters = [
            Some(format!("sort={}", query.sort)),
            query.item_id.as_ref().map(|id| format!("item_id={id}")),
            query.variant_id.map(|id| format!("variant_id={id}")),
            query.min_price.map(|price| format!("min_price={price}")),
            query.max_price.map(|price| format!("max_price={price}")),
        ];
        parameters.into_iter().flatten().collect::<Vec<_>>().join("&")
    }

    fn plan(query: &ListingQuery) -> QueryPlan {
        QueryPlan::for_listings(query)
    }

    fn handler(service: &Service<'_>) -> Result<Box<dyn Handler>, Missing> {
        Ok(Box::new(listings::api(service)?))
    }
}

/// The name of each kind of question, a kind of item to search in, and the texts to search for. Nine texts take turns,
/// because the catalog keeps the counts of the latest eight searches.
const TEXTS: [(&str, &str, &[&str]); 9] = [
    ("everything", "skin", &[""]),
    ("1 character, often", "skin", &["a", "s", "r", "i", "e", "o", "n", "t", "l"]),
    ("1 character, never", "skin", &["#", "@", "$", "%", "~", "^", "=", "+", "["]),
    ("3 characters, often", "skin", &["red", "sil", "iro", "pap", "mid", "nig", "sta", "sol", "wil"]),
    ("3 characters, seldom", "music_kit", &["fjo", "umb", "kil", "uki", "ylo", "zed", "yes", "olf", "xyl"]),
    ("3 characters, never", "skin", &["zqx", "qqz", "xzj", "jqk", "a|b", "vvq", "wzx", "kzq", "zzv"]),
    (
        "10 characters, often",
        "sticker",
        &[
            "sticker | ",
            " | oslo 20",
            " | lisbon ",
            "toronto 20",
            "kitchen kn",
            "seoul 2025",
            "prague 202",
            "(holo) | t",
            "(glitter) ",
        ],
    ),
    (
        "10 characters, seldom",
        "music_kit",
        &[
            "fjordlys, ",
            "hanna qvis",
            "kilo watt,",
            "umber, cla",
            "xylo, bone",
            "yuki arai,",
            "zed minor,",
            "two left f",
            "low ceilin",
        ],
    ),
    (
        "10 characters, never",
        "skin",
        &[
            "midnight z",
            "kitchen zn",
            "paper plzn",
            "sticker ||",
            "zqxzqxzqxz",
            "turquoise#",
            "phantom zq",
            "electric |",
            "hourglassz",
        ],
    ),
];

/// The catalog as a subject of measurements.
pub(super) struct CatalogSubject;

impl Subject for CatalogSubject {
    const STREAM: ReplicaStream = ReplicaStream::Catalog;
    const PATH: &'static str = "/v1/public/catalog";
    type View = Catalog;
    type Query = CatalogQuery;

    fn kinds(_: &LargeMarket) -> Vec<QuestionKind<CatalogQuery>> {
        let queries = |texts: &[&str], kind: Option<&str>| {
            let query = |q: &&str| CatalogQuery { q: (*q).to_owned(), kind: kind.map(ToOwned::to_owned) };
            texts.iter().map(query).collect()
        };
        let kinds = TEXTS.into_iter().map(|(name, kind, texts)| {
            [
                QuestionKind { name: name.to_owned(), queries: queries(texts, None) },
                QuestionKind { name: format!("{name}, kind"), queries: queries(texts, Some(kind)) },
            ]
        });
        kinds.flatten().collect()
    }

    fn page(view: &Catalog, query: &CatalogQuery, paging: Paging) -> usize {
        std::hint::black_box(view.page(query, paging)).1
    }

    fn parameters(query: &CatalogQuery) -> String {
        let q = utf8_percent_encode(&query.q, NON_ALPHANUMERIC);
        query.kind.as_ref().map_or_else(|| format!("q={q}"), |kind| format!("q={q}&kind={kind}"))
    }

    fn plan(query: &CatalogQuery) -> QueryPlan {
        QueryPlan::for_catalog(query)
    }

    fn handler(service: &Service<'_>) -> Result<Box<dyn Handler>, Missing> {
        Ok(Box::new(catalog::api(service)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_holds_the_last_record() {
        let pages = |total| Depth::ALL.map(|depth| depth.paging(total).page);
        assert_eq!(pages(0), [1, 1, 1]);
        assert_eq!(pages(100), [1, 1, 1]);
        assert_eq!(pages(1_001), [1, 5, 11]);
    }
}
