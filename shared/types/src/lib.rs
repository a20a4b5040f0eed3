//! The words of the service: identifiers, money, time, scopes, paging, records and events. No I/O, no AWS.

pub mod clock;
pub mod event;
pub mod ids;
pub mod include;
pub mod money;
pub mod names;
mod packed;
pub mod paging;
pub mod records;
pub mod rotation;
pub mod scope;
pub mod sort;
pub mod timestamp;
