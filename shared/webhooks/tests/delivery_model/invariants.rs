//! What must always hold.

use stateright::Property;
use webhooks::delivery::{CLAIMS, Status};

use crate::bounds::Bounds;
use crate::world::World;

/// The name of all of them.
pub(crate) const INVARIANTS: &str = "the invariants";

/// An invariant that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// A delivery has a wake-up if, and only if, it is pending.
    NoWakeUp,
    /// Whatever goes wrong, a delivery comes to an end.
    Unsettled,
    /// Of one delivery there is one POST at a time.
    TwoAtOnce,
    /// An attempt is claimed, and so sent, three times at most.
    SentTooOften,
    /// Each attempt's failure is on record once, and a round has seven attempts on record at most.
    Miscounted,
    /// A retry waits for its delay after the failure before it.
    Early,
    /// No POST is made by one who read the endpoint when it was off.
    SentToOff,
    /// What a process that is not late has found out under its lease is put on record.
    ResultLost,
    /// An acknowledgement of a pending delivery's round ends it, however late it is.
    AcknowledgementIgnored,
    /// What is delivered or failed remains so until it is sent again, and neither a round nor an attempt begins
    /// again.
    Reopened,
    /// The next attempt begins without claims and without a lease.
    Worn,
    /// Who deals with an older round changes nothing.
    OlderRound,
    /// An endpoint is switched off because of the seventh failure of a delivery that was claimed while it was
    /// on, and has been since.
    SwitchedOff,
    /// A delivery is held only while its endpoint is off.
    HeldWhileOn,
    /// A delivery is ended only once its endpoint is removed.
    EndedWhileThere,
    /// A removed endpoint leaves no delivery that is held.
    LeftBehind,
    /// A retry that is on record, and a wake-up that was moved, has a message.
    Uncalled,
}

/// Whether all of them have held so far, and what must be possible at all.
pub(crate) fn properties() -> Vec<Property<Bounds>> {
    vec![
        Property::always(INVARIANTS, |_, world: &World| world.broken.is_none()),
        Property::sometimes("delivered", |_, world: &World| is_any(world, Status::Delivered)),
        Property::sometimes("failed", |_, world: &World| is_any(world, Status::Failed)),
        Property::sometimes("held", |_, world: &World| is_any(world, Status::Held)),
        Property::sometimes("removed", |_, world: &World| world.endpoint.is_none() && is_any(world, Status::Failed)),
        Property::sometimes("no result", |_, world: &World| {
            world.deliveries.iter().any(|delivery| delivery.progress.claims > CLAIMS)
        }),
        Property::sometimes("switched off", |_, world: &World| !world.notices.is_empty()),
        Property::sometimes("switched off twice", |_, world: &World| world.notices.len() > 1),
        Property::sometimes("sent again", |_, world: &World| {
            world.deliveries.iter().any(|delivery| delivery.progress.round > 1)
        }),
    ]
}

fn is_any(world: &World, status: Status) -> bool {
    world.deliveries.iter().any(|delivery| delivery.progress.status == status)
}
