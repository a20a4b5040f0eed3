//! What holds of every history, and how late attempts were.

use std::collections::BTreeMap;
use std::time::Duration;

use common::ids::DeliveryId;
use webhooks::delivery::{Delivery, Status};
use webhooks::drain::IN_FLIGHT;
use webhooks::{ATTEMPTS, Schedule};

use crate::receivers::{Behaviour, Post};
use crate::world::World;

/// What is allowed to happen in a history beside deliveries that go well.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    /// Instances may be stopped, or answers lost. Then an attempt that was made may not be recorded, and is made again.
    pub(crate) repeats: bool,
}

/// What was seen of a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// What must never happen.
    pub(crate) wrong: Vec<String>,
    /// The longest time in which an attempt was due, its receiver had room, and nothing held it up.
    pub(crate) latest: Duration,
    /// The delivery of that attempt.
    pub(crate) latest_delivery: String,
    pub(crate) posts: Vec<Post>,
}

/// Looks at a history until now.
pub(crate) async fn judge(world: &World, schedule: Schedule, allowed: Allowed) -> Verdict {
    let (now, all) = (world.receivers.elapsed(), world.receivers.posts());
    let mut posts: BTreeMap<DeliveryId, Vec<Post>> = BTreeMap::new();
    for post in &all {
        posts.entry(post.delivery).or_default().push(*post);
    }
    let mut verdict = Verdict { posts: all.clone(), ..Verdict::default() };
    let sent = world.sent.lock().unwrap().clone();
    for (id, (receiver, at)) in &sent {
        let posts = posts.remove(id).unwrap_or_default();
        let found = world.store.delivery(*id).await.unwrap();
        let mut wrong = |what: &str| verdict.wrong.push(format!("{id} of receiver {receiver}: {what}"));
        let is_over = check(&posts, found.as_ref(), schedule, allowed, &mut wrong);
        let latest = latest(world, &all, *receiver, *at, &posts, schedule, (!is_over).then_some(now));
        // A defect sets a delivery aside for an hour.
        let is_defect = matches!(world.receivers.behaviour(*receiver), Behaviour::Poisonous(..));
        if latest > verdict.latest && !is_defect {
            let row = found.map(|found| found.progress);
            let told = format!("{id} of receiver {receiver}, sent at {at:?}: {posts:?}, {row:?}");
            (verdict.latest, verdict.latest_delivery) = (latest, told);
        }
    }
    for id in posts.keys().filter(|_| !allowed.repeats) {
        verdict.wrong.push(format!("{id} was never sent"));
    }
    verdict
}

/// Checks the POSTs of a delivery against its row. Returns whether no other attempt is to come.
fn check(
    posts: &[Post],
    found: Option<&Delivery>,
    schedule: Schedule,
    allowed: Allowed,
    wrong: &mut impl FnMut(&str),
) -> bool {
    let shortest = Duration::from_secs(schedule.scaled(30).into());
    for (one, next) in posts.iter().zip(posts.iter().skip(1)) {
        match one.ended {
            Some(ended) if ended + shortest <= next.begun + Duration::from_millis(50) => {}
            _ => wrong(&format!("a POST at {:?} and one at {:?}", one.begun, next.begun)),
        }
        if one.is_acknowledged() && !allowed.repeats {
            wrong("sent again after it was acknowledged");
        }
    }
    if posts.iter().filter(|post| post.status.is_some() || !allowed.repeats).count() > ATTEMPTS as usize + 3 {
        wrong("too many attempts");
    }
    let is_acknowledged = posts.last().is_some_and(Post::is_acknowledged);
    match found.map(|delivery| delivery.progress.status) {
        None if !posts.is_empty() => wrong("sent but not stored"),
        Some(Status::Delivered) if !posts.iter().any(Post::is_acknowledged) => wrong("delivered without an answer"),
        Some(Status::Pending) if is_acknowledged && !allowed.repeats => wrong("acknowledged but pending"),
        _ => {}
    }
    found.is_some_and(|delivery| delivery.progress.status != Status::Pending)
}

/// Returns the longest time in which an attempt of a delivery was due and nothing held it up. An attempt that is still
/// to come counts as made at `open_until`.
fn latest(
    world: &World,
    all: &[Post],
    receiver: usize,
    sent: Duration,
    posts: &[Post],
    schedule: Schedule,
    open_until: Option<Duration>,
) -> Duration {
    let mut latest = Duration::ZERO;
    let mut due = Some(sent);
    let mut failed = 0;
    for post in posts {
        latest = due.map_or(latest, |due| latest.max(idle(world, all, receiver, due, post.begun)));
        due = match (post.status, post.ended) {
            // It is under way, or acknowledged.
            (_, None) | (Some(200..=299), _) => None,
            (_, Some(ended)) => {
                failed += 1;
                let delays = webhooks::DELAYS_SECONDS;
                let delay = *delays.get(failed - 1).unwrap_or(&0);
                let slack = if delay > 900 { 60 } else { 0 };
                (failed < ATTEMPTS as usize)
                    .then(|| ended + Duration::from_secs((schedule.scaled(delay) + schedule.scaled(slack)).into()))
            }
        };
    }
    if let (Some(due), Some(now)) = (due, open_until)
        && due < now
    {
        latest = latest.max(idle(world, all, receiver, due, now));
    }
    latest
}

/// Returns how much of the time from `due` to `begun` nothing explains: the receiver had room, and for the time since
/// then nothing was stopped or refused.
fn idle(world: &World, all: &[Post], receiver: usize, due: Duration, begun: Duration) -> Duration {
    let calm = world.disasters.lock().unwrap().iter().copied().filter(|at| *at <= begun).max().unwrap_or_default();
    let from = due.max(calm);
    let busy = |post: &Post| {
        let (one, other) = (post.begun.max(from), post.ended.unwrap_or(begun).min(begun));
        other.saturating_sub(one)
    };
    let busy: Duration = all.iter().filter(|post| post.receiver == receiver).map(busy).sum();
    begun.saturating_sub(from).saturating_sub(busy / IN_FLIGHT as u32)
}
