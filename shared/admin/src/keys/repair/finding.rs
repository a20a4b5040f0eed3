//! What a repair finds wrong with keys.

use types::closed_enum;
use types::ids::{KeyId, UserId};

closed_enum! {
    /// What was wrong with a key.
    pub enum KeyProblem {
        /// A rotation had replaced it, and its own row does not say so. A repair revokes it.
        RotationCut = "rotation_cut",
        /// A rotation had replaced it, and the new key is gone. It stays as the rotation left it: revoked, or accepted
        /// until the overlap ends.
        SuccessorLost = "successor_lost",
        /// It was accepted, but could not be listed or could not be revoked. A repair puts back the rows that find it.
        NotFindable = "not_findable",
        /// Nothing but rows that find it was left of it. A repair removes them.
        Lost = "lost",
        /// The damaged table has it as revoked or replaced, and the restored one had not. A repair revokes it.
        RevokedSince = "revoked_since",
    }
}

/// What was wrong with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFinding {
    pub problem: KeyProblem,
    pub key_id: KeyId,
    /// Its owner, if a row that is left tells.
    pub user_id: Option<UserId>,
}
