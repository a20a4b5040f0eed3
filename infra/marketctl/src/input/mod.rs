//! Messages from a file or standard input, one a line, read ahead while earlier ones are worked on.

mod chunks;
mod lines;
mod progress;
mod reader;
mod source;
mod stopped;

pub(crate) use progress::Progress;
pub(crate) use reader::Reader;
pub(crate) use source::Source;
pub(crate) use stopped::Stopped;
