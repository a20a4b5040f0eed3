//! The parts of the measurements of large markets.

use clap::ValueEnum;
use serde::Serialize;

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Section {
    /// One cold start of `listings`, and many at once, on simulated time.
    Starts,
    /// Many processes at once that load the listings, for real.
    Processes,
    /// Fifty new instances under a thousand requests a second, on simulated time.
    Deployment,
    /// Changes per second of one writer and of two, on simulated time.
    Writes,
    /// How many instances one log serves, on simulated time.
    Followers,
    /// A year of sales, on simulated time.
    Year,
    /// CPU time and memory of replicas, and CPU time of every kind of question.
    Replicas,
    /// Time and memory of the runs that make a base from the entities.
    Compaction,
}
