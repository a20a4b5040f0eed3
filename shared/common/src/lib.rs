//! What every crate needs: values without I/O (ids, money, times, scopes, records, events), and the way to AWS
//! (clients, rows and conditional writes, queues, the Lambda runtime, logs, metrics, checks before the first event).

pub mod aws;
pub mod backoff;
pub mod change;
pub mod clock;
pub mod event;
pub mod ids;
pub mod layout;
pub mod logging;
pub mod metrics;
pub mod money;
pub mod names;
pub mod paging;
pub mod preflight;
pub mod queues;
pub mod reasons;
pub mod records;
pub mod resources;
pub mod rotation;
pub mod rows;
pub mod runtime;
pub mod scope;
pub mod store;
pub mod timestamp;
pub mod transaction;
