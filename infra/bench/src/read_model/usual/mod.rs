//! The usual way to answer the same questions: DynamoDB's own indexes, a filter, a count over the whole result
//! for the total, and skipping for the page.
//!
//! It is given every advantage that it can have here. Each order of everything, of an item and of a variant has
//! an index of its own, which holds keys and what filters look at and nothing else, so that a megabyte, as
//! much as one call reads, holds ten thousand entries. A price range is a key condition wherever the index is by
//! price. The one walk that counts also finds the page, and the page's records are fetched by one call. Reads may be
//! behind, which halves their price. In one partition they all lie; on AWS that bounds a walk to 24 MB a second.

mod ask;
mod plan;
mod side;

pub(super) use ask::Cost;
pub(super) use plan::{Plan, of_catalog, of_listings};
pub(super) use side::UsualSide;
pub(crate) use side::run;
