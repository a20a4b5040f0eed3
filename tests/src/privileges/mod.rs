//! Functions run with what the template gives them, variables and privileges, and with nothing else: what it
//! does not give is refused, and fails the test. So what any test makes a function do, a deployed one may do.

mod ledger;
mod needs;

use std::fmt;

pub use ledger::Ledger;

/// Something that a function is given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// A variable of its environment.
    Variable(String),
    /// The right to make a call on a resource.
    Privilege {
        /// As policies name it, such as `dynamodb:GetItem`.
        action: String,
        /// Its ARN.
        resource: String,
    },
}

impl Grant {
    pub(crate) fn privilege(action: impl Into<String>, resource: impl Into<String>) -> Self {
        Self::Privilege { action: action.into(), resource: resource.into() }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Privilege { action, resource } => {
                // Of an ARN what comes after service, region and account.
                write!(f, "{action} on {}", resource.splitn(6, ':').last().unwrap_or_default())
            }
        }
    }
}
