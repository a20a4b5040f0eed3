//! The usual way to answer the same questions: DynamoDB's own indexes, a filter, a count over the whole result for the
//! total, and skipping to the page.
//!
//! It gets every advantage that it can have here. Each sort order of everything, of an item and of a variant has an
//! index of its own. An index holds only keys and the attributes that filters need, so the megabyte that one call can
//! read holds ten thousand entries. If the index is sorted by price, a price range is a key condition. The walk that
//! counts also finds the page, and the page's records are fetched by one call. Reads are eventually consistent, which
//! halves their price. All entries of an index lie in one partition; on AWS that limits a walk to 24 MB per second.

mod ask;
mod plan;
mod side;

pub(super) use ask::Cost;
pub(super) use plan::{QueryPlan, plan_catalog, plan_listings};
pub(super) use side::UsualSide;
pub(crate) use side::run;
