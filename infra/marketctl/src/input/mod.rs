//! Reads messages, one per line, from a file or standard input, ahead of the work on them.

mod chunks;
mod lines;
mod progress;
mod reader;
mod source;
mod stopped;

pub(crate) use progress::ProgressDisplay;
pub(crate) use reader::Reader;
pub(crate) use source::Source;
pub(crate) use stopped::Stopped;
