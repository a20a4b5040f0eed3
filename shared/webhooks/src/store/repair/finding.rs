//! What a repair finds wrong with endpoints.

use types::closed_enum;
use types::ids::{EndpointId, UserId};

closed_enum! {
    /// What was wrong with an endpoint.
    pub enum EndpointProblem {
        /// It had been removed, and still it was there. A repair removes it, and ends its deliveries.
        RemovalCut = "removal_cut",
        /// It had been switched off because deliveries failed, and still it was on. A repair switches it off.
        SwitchOffCut = "switch_off_cut",
        /// The notice that it was switched off was missing. A repair puts it back, and a sweep sends it.
        NoticeMissing = "notice_missing",
        /// It was there, but its id did not find it. A repair puts back the row that does.
        NotFindable = "not_findable",
        /// Nothing but the row that finds it was left of it. A repair notes it as removed, and ends its deliveries.
        Lost = "lost",
    }
}

/// What was wrong with one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointFinding {
    pub problem: EndpointProblem,
    pub endpoint_id: EndpointId,
    /// The account that the endpoint belongs to.
    pub account_id: UserId,
}
