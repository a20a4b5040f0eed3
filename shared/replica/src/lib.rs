//! The read model: a stream's records in the memory of an instance, indexed. Pages and totals are exact at any depth.

pub mod base;
mod catalog;
mod follow;
mod listings;
pub mod objects;
mod progress;
mod sequence;
mod spans;

use common::store::StoreError;

/// Does long work on a thread beside the runtime, which goes on to answer requests meanwhile.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Defect("long work panicked".to_owned()))
}

/// Does two things at the same time, the second one on a thread of its own.
fn join<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

pub use catalog::{Catalog, CatalogQuery};
pub use follow::{Replica, View};
pub use listings::{ListingQuery, Listings};
