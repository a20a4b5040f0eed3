//! The version in a message.

use serde::Deserialize;
use thiserror::Error;

/// The highest version of a message: the highest number of 63 bits, which databases and most languages can hold. The
/// tables hold numbers up to twice as high. So if a sender's counter goes astray, there are still higher numbers for a
/// repair, which no message can overtake by mistake.
const MAX_VERSION: u64 = i64::MAX.cast_unsigned();

/// A version, from 0 to [`MAX_VERSION`].
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct Version(pub(super) u64);

/// The version is higher than a message may have.
#[derive(Debug, Error)]
#[error("must be at most {max}", max = MAX_VERSION)]
pub(super) struct VersionTooHigh;

impl TryFrom<u64> for Version {
    type Error = VersionTooHigh;

    fn try_from(number: u64) -> Result<Self, VersionTooHigh> {
        if number <= MAX_VERSION { Ok(Self(number)) } else { Err(VersionTooHigh) }
    }
}
