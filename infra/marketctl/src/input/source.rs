//! Opens the source of messages: a file or standard input.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use thiserror::Error;

use crate::failure::CommandFailure;

/// A FILE argument; `-` is standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// An open source.
pub(crate) struct OpenedSource {
    pub(crate) stream: Box<dyn Read + Send>,
    /// Its length in bytes, if known.
    pub(crate) bytes: Option<u64>,
}

/// A source that cannot be opened.
#[derive(Debug, Error)]
#[error("{name} cannot be opened: {cause}")]
pub(crate) struct OpenError {
    name: String,
    cause: io::Error,
}

impl From<OpenError> for CommandFailure {
    fn from(error: OpenError) -> Self {
        Self::new(error.to_string(), "Give a file that can be read, or `-` for standard input.")
    }
}

impl From<OsString> for Source {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Self::Stdin } else { Self::File(argument.into()) }
    }
}

impl Source {
    pub(crate) fn open(&self) -> Result<OpenedSource, OpenError> {
        match self {
            Self::Stdin => Ok(OpenedSource { stream: Box::new(io::stdin()), bytes: None }),
            Self::File(path) => {
                let name = path.display().to_string();
                open(path).map_err(|cause| OpenError { name, cause })
            }
        }
    }
}

fn open(path: &PathBuf) -> io::Result<OpenedSource> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The length of a pipe or a device says nothing about how much there is to read.
    let bytes = metadata.is_file().then_some(metadata.len());
    Ok(OpenedSource { stream: Box::new(file), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_input() {
        assert_eq!(Source::from(OsString::from("-")), Source::Stdin);
        assert_eq!(Source::from(OsString::from("./-")), Source::File("./-".into()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for path in ["/nowhere/feed.ndjson", "/"] {
            let refused = Source::File(path.into()).open().err().unwrap();
            assert!(refused.to_string().starts_with(&format!("{path} cannot be opened: ")));
        }
    }
}
