//! The subject of a measurement: a replica with its index, the endpoint that answers from it, and the kinds of
//! questions that it is asked.

use api::Handler;
use platform::aws::Missing;
use platform::service::Service;
use replica::View;
use serde::Serialize;
use types::paging::Paging;

use super::cold::ReplicaStream;
use super::usual;
use crate::market::GeneratedMarket;

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
    fn kinds(market: &GeneratedMarket) -> Vec<QuestionKind<Self::Query>>;

    /// Asks the index for a page and returns the total.
    fn page(view: &Self::View, query: &Self::Query, paging: Paging) -> usize;

    /// Returns the question as the query of a URL, without the page.
    fn parameters(query: &Self::Query) -> String;

    /// Returns the question as DynamoDB's own indexes are asked it.
    fn plan(query: &Self::Query) -> usual::QueryPlan;

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
