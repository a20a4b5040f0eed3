//! Functions run with the variables and privileges that the template gives them, and with nothing else. Anything else
//! is refused and fails the test. So a deployed function may do whatever a test makes it do.

mod ledger;
mod needs;

use std::fmt;

pub use ledger::Ledger;

/// Something that the template gives to a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionGrant {
    /// A variable of its environment.
    Variable(String),
    /// The right to perform an action on a resource.
    Privilege {
        /// The action's name in policies, such as `dynamodb:GetItem`.
        action: String,
        /// The resource's ARN.
        resource: String,
    },
}

impl FunctionGrant {
    pub(crate) fn privilege(action: impl Into<String>, resource: impl Into<String>) -> Self {
        Self::Privilege { action: action.into(), resource: resource.into() }
    }
}

impl fmt::Display for FunctionGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Privilege { action, resource } => {
                // The part of the ARN after service, region and account.
                write!(f, "{action} on {}", resource.splitn(6, ':').last().unwrap_or_default())
            }
        }
    }
}
