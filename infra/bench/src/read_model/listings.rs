//! Questions to the listings: every sort order with every filter.

use api::Handler;
use platform::aws::Missing;
use platform::service::Service;
use replica::{ListingQuery, Listings};
use types::money::Usd;
use types::paging::Paging;
use types::sort::Sort;

use super::cold::ReplicaStream;
use super::subject::{QuestionKind, Subject};
use super::usual::{self, QueryPlan};
use crate::market::{GeneratedMarket, variant_id};

/// The number of questions of each kind. They are about the items with the most listings, and prices from the whole
/// range.
const QUESTIONS_PER_KIND: u64 = 8;

/// The name of a filter, and a function that makes the filter from the number of a question.
type Filter = (&'static str, fn(&GeneratedMarket, u64) -> ListingQuery);

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

fn of_item(market: &GeneratedMarket, number: u64) -> ListingQuery {
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

    fn kinds(market: &GeneratedMarket) -> Vec<QuestionKind<ListingQuery>> {
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
        usual::plan_listings(query)
    }

    fn handler(service: &Service<'_>) -> Result<Box<dyn Handler>, Missing> {
        Ok(Box::new(listings::api(service)?))
    }
}
