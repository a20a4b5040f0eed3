//! What calls use: units of a partition of a table or index.

/// A table, or one of its global secondary indexes, which have a throughput of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub table: String,
    pub index: Option<String>,
}

/// The two kinds of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    Read,
    Write,
}

/// Units that a call takes. Without a partition, as for a scan, they count only for the table or index as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Use {
    pub(super) resource: Resource,
    pub(super) partition: Option<String>,
    pub(super) access: Access,
    pub(super) units: f64,
}

/// Read and write units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    pub read: f64,
    pub write: f64,
}

impl Resource {
    pub(super) fn table(name: &str) -> Self {
        Self { table: name.to_owned(), index: None }
    }

    pub(super) fn index(table: &str, index: &str) -> Self {
        Self { table: table.to_owned(), index: Some(index.to_owned()) }
    }
}

impl Units {
    pub(super) fn add(&mut self, access: Access, units: f64) {
        match access {
            Access::Read => self.read += units,
            Access::Write => self.write += units,
        }
    }
}
