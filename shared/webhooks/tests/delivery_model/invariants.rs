//! The invariants that must hold in every state.

use stateright::Property;
use webhooks::delivery::{MAX_CLAIMS, Progress, Status};

use crate::bounds::Bounds;
use crate::run::RunStep;
use crate::world::World;

/// The name of the property that covers all invariants.
pub(crate) const INVARIANTS: &str = "the invariants";

/// The invariants, each named after what is wrong when it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// A settled delivery has no wake-up. A pending one has one, or a message that carries it is in the queue or with a
    /// worker. So is that of a delivery that is not stored, unless its endpoint was removed.
    NoWakeUp,
    /// Whatever goes wrong, every delivery settles.
    Unsettled,
    /// At most one POST of a delivery is open at a time.
    TwoAtOnce,
    /// An attempt is claimed, and therefore sent, at most three times.
    SentTooOften,
    /// Each failed attempt is recorded once, and a round has at most `ATTEMPTS` recorded ones.
    Miscounted,
    /// A retry is never sent before its delay after the previous failure is over.
    Early,
    /// A worker that read the endpoint as off makes no POST.
    SentToOff,
    /// A result that a worker found under its lease is recorded, unless its write comes late or an earlier attempt
    /// was acknowledged.
    ResultLost,
    /// An acknowledgement in a pending delivery's current round ends the delivery, however late it comes.
    AcknowledgementIgnored,
    /// A delivered or failed delivery stays so until it is resent, and no round and no attempt begins twice.
    Reopened,
    /// The next attempt begins without claims and without a lease.
    Worn,
    /// A worker that handles an older round changes nothing.
    OlderRound,
    /// An endpoint is switched off only by the last failure of a round, and only if all its attempts were sent in
    /// its present epoch.
    SwitchedOff,
    /// A delivery is held only while its endpoint is off.
    HeldWhileOn,
    /// A delivery is ended because of a removal only after its endpoint was removed.
    EndedWhileThere,
    /// A removed endpoint leaves no held delivery behind.
    LeftBehind,
    /// When a retry was recorded that waits as a message, the message exists or was lost.
    Uncalled,
    /// A pending delivery that has a wake-up has a drain that looks by then or soon. Otherwise a message that carries it is
    /// in the queue, a worker has it, or the operator who has written it calls the drain next.
    Unwatched,
    /// A run does not end if the drain was called for at once since the run read its row.
    Unheard,
    /// The drain has one run at a time, and a run that has lost the drain's token changes nothing of its row.
    TwoRuns,
}

/// The property that the invariants hold in every state, and the outcomes that some state must reach.
pub(crate) fn properties() -> Vec<Property<Bounds>> {
    vec![
        Property::always(INVARIANTS, |_, world: &World| world.broken.is_none()),
        Property::sometimes("delivered", |_, world: &World| is_any(world, Status::Delivered)),
        Property::sometimes("failed", |_, world: &World| is_any(world, Status::Failed)),
        Property::sometimes("held", |_, world: &World| is_any(world, Status::Held)),
        Property::sometimes("removed", |_, world: &World| world.endpoint.is_none() && is_any(world, Status::Failed)),
        Property::sometimes("no result", |_, world: &World| {
            progress(world).any(|progress| progress.claims > MAX_CLAIMS)
        }),
        Property::sometimes("switched off", |_, world: &World| !world.notices.is_empty()),
        Property::sometimes("sent again", |_, world: &World| progress(world).any(|progress| progress.round > 1)),
        Property::sometimes("never stored", |_, world: &World| {
            let is_handled = world.queue.is_empty() && world.workers.is_empty();
            world.endpoint.is_none() && is_handled && progress(world).count() == 0
        }),
        Property::sometimes("drained", |_, world: &World| world.workers.iter().any(|worker| worker.run.is_some())),
        Property::sometimes("asleep", |_, world: &World| world.drain.is_some_and(|row| row.is_asleep)),
        Property::sometimes("over", |_, world: &World| world.drain.is_some_and(|row| row.wake_at.is_none())),
        Property::sometimes("handed on", |_, world: &World| {
            world.runs.iter().any(|run| matches!(run.step, RunStep::Send(_)))
        }),
        Property::sometimes("a message lost", |_, world: &World| world.has_lost),
    ]
}

fn is_any(world: &World, status: Status) -> bool {
    progress(world).any(|progress| progress.status == status)
}

fn progress(world: &World) -> impl Iterator<Item = &Progress> {
    world.deliveries.iter().filter_map(|delivery| delivery.progress.as_ref())
}
