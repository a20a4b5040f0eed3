//! What S3 was asked for.

use super::usage::Access;

/// What S3 was asked for since the last report, under its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReport {
    /// Requests that read, as far as they were admitted. An SDK's retries count as requests.
    pub gets: u64,
    /// Requests that write, as far as they were admitted.
    pub puts: u64,
    /// The bytes of objects that were read.
    pub read_bytes: u64,
    /// The bytes of objects that were written.
    pub written_bytes: u64,
    /// Requests that were answered by 503.
    pub refused: u64,
}

impl ObjectReport {
    pub(super) fn count(&mut self, access: Access, is_admitted: bool) {
        let count = match access {
            _ if !is_admitted => &mut self.refused,
            Access::Read => &mut self.gets,
            Access::Write => &mut self.puts,
        };
        *count += 1;
    }

    pub(super) fn add_bytes(&mut self, access: Access, bytes: usize) {
        let sum = match access {
            Access::Read => &mut self.read_bytes,
            Access::Write => &mut self.written_bytes,
        };
        *sum += bytes as u64;
    }
}
