//! The read model: a stream's records in the memory of an instance, indexed. Pages and totals are exact at any depth.

pub mod base;
mod catalog;
mod follow;
mod listings;
pub mod objects;
mod progress;
mod sequence;
mod spans;

pub use catalog::{Catalog, CatalogQuery};
pub use follow::{Replica, View};
pub use listings::{ListingQuery, Listings};
