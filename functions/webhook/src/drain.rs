//! A run of an account's drain: makes the attempts of the deliveries that wait in the table.
//!
//! Each endpoint has attempts of its own under way, so one that hangs does not delay its siblings. A run ends when
//! nothing is left that is due, or when its time is up. Then it hands the drain on to the next message, and waits for its
//! last attempts. The next run finds them leased, and counts them as its own.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::ids::{DeliveryId, EndpointId};
use common::rows::Unreadable;
use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, sleep_until};
use webhooks::DrainCall;
use webhooks::delivery::{Dispatch, Token, at_once, claim_due, expire, hold};
use webhooks::drain::{
    BEGIN_FOR, Drain, FULL_AFTER_SECONDS, FULL_AT, GRACE_SECONDS, IN_FLIGHT, LOOK_EVERY, LOOKS, Load,
    MEASURE_EVERY_SECONDS, NAP_SECONDS, PAUSE, Proof, load,
};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::notice::FullNotice;
use webhooks::store::{Certainty, Rest, StepOutcome, Waiting};

use crate::Webhook;
use crate::attempt::{Claimed, Made};
use crate::batch::Found;
use crate::received::{DispatchOutcome, Received};

/// How many waiting deliveries are read at once.
const READ_AHEAD: i32 = 25;
/// How long an attempt that another run makes keeps its room, until this run looks again.
const BLOCKED_FOR: Duration = Duration::from_secs(2);
/// An attempt begins at most this long after its endpoint was read.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// By how much clocks may differ, in milliseconds.
const CLOCK_MILLIS: i64 = 60_000;
/// How long a delivery is set aside that cannot be read or signed, in seconds.
const ASIDE_SECONDS: u32 = 60 * 60;

/// What a run has under way.
type UnderWay<'a> = FuturesUnordered<BoxFuture<'a, Ended>>;

/// What a run knows.
struct Run {
    drain: Drain,
    begun: Instant,
    /// The endpoints as they were at `read_at`. There may be new ones since a call.
    found: Found,
    read_at: Instant,
    is_called: bool,
    queues: BTreeMap<EndpointId, EndpointQueue>,
    /// The removed endpoints whose deliveries it has begun to end.
    ending: BTreeSet<EndpointId>,
    /// Whether deliveries of a removed endpoint may be left.
    is_removing: bool,
    /// When it last looked into the index.
    looked_at: Timestamp,
    /// Until it hands the drain on. Then its failures call the drain as those of messages do.
    has_drain: Arc<AtomicBool>,
    /// Whether a later run has to look again, because something failed or the index cannot show everything yet.
    is_unsure: bool,
    outcomes: Vec<DispatchOutcome>,
}

/// What waits for one endpoint.
#[derive(Default)]
struct EndpointQueue {
    /// In the order of their attempts.
    waiting: VecDeque<Waiting>,
    /// Deliveries that the run has begun.
    begun: HashSet<DeliveryId>,
    under_way: usize,
    /// How often the run still looks for more.
    looks: u32,
    /// When the next delivery is due, as far as the index shows.
    next: Option<Timestamp>,
    proof: Proof,
}

/// What has ended.
enum Ended {
    /// Without a result if another run is making the attempt.
    Attempt {
        endpoint: EndpointId,
        waiting: Waiting,
        made: Result<Option<Made>, StoreError>,
    },
    Removal(Result<bool, StoreError>),
}

impl Webhook {
    /// Runs the drain that a message calls for. Returns the outcome of the message, and those of the deliveries.
    pub(crate) async fn drain(&self, call: DrainCall) -> (DispatchOutcome, Vec<DispatchOutcome>) {
        let mut outcomes = Vec::new();
        let outcome = match self.run_drain(call, &mut outcomes).await {
            Ok(true) => DispatchOutcome::Drained,
            Ok(false) => DispatchOutcome::Void,
            // The row is still awake, so a sweep calls the drain again.
            Err(error) => DispatchOutcome::Failed(format!("cannot drain: {error}")),
        };
        (outcome, outcomes)
    }

    /// Returns whether the message was not void.
    async fn run_drain(&self, call: DrainCall, outcomes: &mut Vec<DispatchOutcome>) -> Result<bool, StoreError> {
        let DrainCall { account_id, token } = call;
        let mine = Token::random();
        let Some(drain) = self.store.begin_drain(account_id, token, mine, self.clock.now()).await? else {
            return Ok(false);
        };
        let found = self.endpoints(&[account_id].into()).await?;
        let mut run = Run::new(drain, found, self.clock.now());
        let mut under_way = UnderWay::new();
        let ended = self.begin_attempts(&mut run, &mut under_way).await;
        // Whatever went wrong, what has begun is finished.
        while let Some(ended) = under_way.next().await {
            self.ended(&mut run, ended).await;
        }
        outcomes.append(&mut run.outcomes);
        ended.map(|()| true)
    }

    /// Makes attempts until nothing is left that is due, or until the time is up.
    async fn begin_attempts<'a>(&'a self, run: &mut Run, under_way: &mut UnderWay<'a>) -> Result<(), StoreError> {
        let mut next_look = run.begun + LOOK_EVERY;
        while run.begun.elapsed() < BEGIN_FOR {
            self.refill(run, under_way).await?;
            if !under_way.is_empty() {
                tokio::select! {
                    Some(ended) = under_way.next() => self.ended(run, ended).await,
                    () = sleep_until(next_look) => {
                        next_look = Instant::now() + LOOK_EVERY;
                        self.look(run).await?;
                    }
                }
            } else if run.is_looking() {
                sleep(PAUSE).await;
            } else if self.rest(run).await? {
                return Ok(());
            }
        }
        run.has_drain.store(false, Ordering::Relaxed);
        self.hand_on(run).await?;
        self.measure(run).await
    }

    /// Begins attempts as far as there is room, and looks for more that wait.
    async fn refill<'a>(&'a self, run: &mut Run, under_way: &mut UnderWay<'a>) -> Result<(), StoreError> {
        let now = self.clock.now();
        if std::mem::take(&mut run.is_called) {
            run.read_again(self.endpoints(&[run.drain.account_id].into()).await?);
        }
        for (id, queue) in &mut run.queues {
            let room = IN_FLIGHT.saturating_sub(queue.under_way);
            if queue.looks > 0 && queue.waiting.len() < room {
                run.looked_at = now;
                self.find_waiting(*id, queue, now).await?;
            }
        }
        let is_any = run.queues.values().any(|queue| queue.under_way < IN_FLIGHT && !queue.waiting.is_empty());
        if is_any && run.read_at.elapsed() > FRESH_FOR {
            run.read_again(self.endpoints(&[run.drain.account_id].into()).await?);
        }
        for (id, queue) in &mut run.queues {
            while queue.under_way < IN_FLIGHT
                && let Some(waiting) = queue.waiting.pop_front()
            {
                let Some(Ok(endpoint)) = run.found.get(id) else { continue };
                queue.under_way += 1;
                queue.begun.insert(waiting.id);
                let has_drain = Arc::clone(&run.has_drain);
                under_way.push(Box::pin(self.attempt_waiting(endpoint.clone(), waiting, has_drain)));
            }
        }
        for id in run.drain.removed.iter().copied().filter(|id| run.ending.insert(*id)) {
            let (account, begun) = (run.drain.account_id, run.begun);
            // Somebody may have read the endpoint before it was removed, and let a delivery wait since then.
            let is_settled = run.drain.is_settled(now, self.schedule.scaled(GRACE_SECONDS));
            under_way.push(Box::pin(async move {
                let ended = self.store.end_deliveries(id, now, || begun.elapsed() < BEGIN_FOR).await;
                Ended::Removal(match ended {
                    Ok(removal) if removal.is_unfinished || !is_settled => Ok(false),
                    Ok(_) => self.store.removal_done(account, id).await.map(|()| true),
                    Err(error) => Err(error),
                })
            }));
        }
        Ok(())
    }

    /// Reads what waits for an endpoint: retries first, so that the retries of a receiver that is down are made in time,
    /// and end in time.
    async fn find_waiting(&self, id: EndpointId, queue: &mut EndpointQueue, now: Timestamp) -> Result<(), StoreError> {
        let limit = READ_AHEAD.saturating_add(i32::try_from(queue.under_way).unwrap_or_default());
        queue.looks -= 1;
        queue.next = None;
        for is_retry in [true, false] {
            let entries = self.store.waiting(id, is_retry, limit).await?;
            let is_full = entries.len() >= READ_AHEAD as usize;
            for entry in entries {
                // A first attempt cannot be early, so clocks that differ do not matter.
                let by = if is_retry { now } else { now.plus_millis(CLOCK_MILLIS) };
                if entry.at > by {
                    queue.next = Some(queue.next.map_or(entry.at, |next| next.min(entry.at)));
                    break;
                }
                let is_new =
                    !queue.begun.contains(&entry.id) && !queue.waiting.iter().any(|other| other.id == entry.id);
                if is_new {
                    queue.waiting.push_back(entry);
                    queue.looks = queue.looks.max(1);
                }
            }
            if is_full && !queue.waiting.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes the attempt of a delivery that waits. If its endpoint is off, holds the delivery, unless it is a test that was
    /// sent since then.
    async fn attempt_waiting(&self, endpoint: WebhookEndpoint, waiting: Waiting, has_drain: Arc<AtomicBool>) -> Ended {
        let made = self.try_waiting(&endpoint, &waiting, has_drain).await;
        Ended::Attempt { endpoint: endpoint.id, waiting, made }
    }

    async fn try_waiting(
        &self,
        endpoint: &WebhookEndpoint,
        waiting: &Waiting,
        has_drain: Arc<AtomicBool>,
    ) -> Result<Option<Made>, StoreError> {
        let only = |outcome| Some(Made { outcome, is_prompt: None });
        if !endpoint.is_on() || endpoint.host_changed_at.is_some() {
            let Some(delivery) = self.store.delivery(waiting.id).await? else { return Ok(only(DispatchOutcome::Void)) };
            let dispatch = Dispatch::next_of(&delivery);
            // It was sent again to the host before.
            if dispatch.round > 1 && !delivery.is_test && endpoint.needs_proof(delivery.created_at) {
                let step = hold(&dispatch, self.clock.now());
                return self.step(&dispatch, &step, DispatchOutcome::Held).await.map(only);
            }
            // Somebody asked for a test although it is off.
            let is_held = !delivery.is_test || endpoint.disabled_at.is_some_and(|at| delivery.created_at < at);
            if !endpoint.is_on() && is_held {
                let message = Received { number: 0, dispatch, carried: None };
                return self.hold(&message, endpoint).await.map(only);
            }
        }
        let secrets = self.secrets(endpoint).await?;
        let (lease, now) = (Token::random(), self.clock.now());
        let step = claim_due(waiting.at, lease, now);
        let delivery = match self.store.step(waiting.id, endpoint.id, &step).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                self.store.unclaim(&waiting.wake_up).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
            Ok(outcome) => outcome,
        };
        let delivery = match delivery {
            StepOutcome::Changed(delivery) => delivery,
            // The answer to an earlier try of the same write was lost.
            StepOutcome::Refused(Some(found)) if found.progress.lease.is_some_and(|held| held.id == lease) => found,
            StepOutcome::Refused(found) => {
                let is_blocked = found.is_some_and(|found| found.progress.is_leased(now));
                if is_blocked {
                    sleep(BLOCKED_FOR).await;
                }
                return Ok(only(DispatchOutcome::Void).filter(|_| !is_blocked));
            }
        };
        if delivery.kept_until() < now {
            let expired = self.store.settle(delivery.id, endpoint.id, &expire(lease)).await?;
            return Ok(only(if expired { DispatchOutcome::Expired } else { DispatchOutcome::Void }));
        }
        let claimed = Claimed { dispatch: Dispatch::next_of(&delivery), delivery, endpoint, lease, has_drain };
        self.make(&claimed, &secrets).await.map(Some)
    }

    /// Notes what has ended.
    async fn ended(&self, run: &mut Run, ended: Ended) {
        let (endpoint, waiting, made) = match ended {
            Ended::Attempt { endpoint, waiting, made } => (endpoint, waiting, made),
            Ended::Removal(is_done) => {
                run.is_removing |= !matches!(is_done, Ok(true));
                run.is_unsure |= is_done.is_err();
                return;
            }
        };
        let Some(queue) = run.queues.get_mut(&endpoint) else { return };
        queue.under_way -= 1;
        match made {
            Ok(None) => {
                queue.begun.remove(&waiting.id);
                queue.looks = queue.looks.max(1);
            }
            Ok(Some(Made { outcome, is_prompt })) => {
                // Its next attempt may not be in the index yet.
                use DispatchOutcome::{Postponed, Unacknowledged, Void};
                run.is_unsure |= matches!(outcome, Unacknowledged | Void | Postponed(_));
                if outcome != Void {
                    // It may be sent again in this run. If the index is only late, the next claim is void.
                    queue.begun.remove(&waiting.id);
                }
                run.outcomes.push(outcome);
                if let Some(is_prompt) = is_prompt {
                    queue.proof.note(is_prompt);
                }
                if queue.proof.is_enough(queue.under_way == 0 && queue.waiting.is_empty())
                    && let Some(Ok(found)) = run.found.get_mut(&endpoint)
                    && !found.is_prompt
                {
                    self.mark_prompt(found).await;
                }
            }
            Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => {
                run.is_unsure = true;
                run.outcomes.push(DispatchOutcome::Postponed(error.to_string()));
            }
            Err(error) => {
                let defect = DispatchOutcome::Defective(error.to_string());
                let Unreadable { row, what } = waiting.wake_up.clone().unreadable(error).unreadable;
                tracing::error!(row, what, "set aside");
                let until = self.schedule.after(self.clock.now(), ASIDE_SECONDS);
                if let Err(error) = self.store.set_aside(&waiting.wake_up, until).await {
                    tracing::warn!(delivery_id = %waiting.id, %error, "cannot set the delivery aside");
                }
                run.is_unsure = true;
                run.outcomes.push(defect);
            }
        }
    }

    /// Notes that an endpoint responds promptly. From then on its attempts are made at once.
    async fn mark_prompt(&self, endpoint: &mut WebhookEndpoint) {
        match self.store.mark_prompt(endpoint, true).await {
            Ok(_) => {
                endpoint.is_prompt = true;
                self.promptness.forget(endpoint.id);
            }
            Err(error) => {
                tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot note that the endpoint is prompt");
            }
        }
    }

    /// Looks whether the drain was called again.
    async fn look(&self, run: &mut Run) -> Result<(), StoreError> {
        let found = self.store.drain(run.drain.account_id).await?;
        if let Some(drain) = found.filter(|drain| drain.token == run.drain.token)
            && drain.calls != run.drain.calls
        {
            run.called(drain);
        }
        Ok(())
    }

    /// Lets the drain sleep until something is due. Returns whether the run has ended. It goes on if the drain was called
    /// again.
    async fn rest(&self, run: &mut Run) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let next = run.queues.values().filter_map(|queue| queue.next).min();
        // Nothing is left that is due, so no endpoint is full any more.
        for endpoint in run.found.values().filter_map(|endpoint| endpoint.as_ref().ok()) {
            if endpoint.full_since.is_some() {
                self.store.mark_not_full(endpoint).await?;
                run.is_called = true;
            }
        }
        let is_sure = !run.is_unsure
            && !run.is_removing
            && run.drain.is_settled(run.looked_at, self.schedule.scaled(GRACE_SECONDS));
        if is_sure {
            let rest = next.map_or(Rest::Over, Rest::Until);
            if self.store.rest_drain(&run.drain, rest, Certainty::Sure).await? {
                return Ok(true);
            }
        }
        let nap = self.schedule.after(now, NAP_SECONDS);
        let until = next.map_or(nap, |next| next.min(nap));
        let certainty = if run.is_unsure { Certainty::Unsure(now) } else { Certainty::Recent };
        if self.store.rest_drain(&run.drain, Rest::Until(until), certainty).await? {
            return Ok(true);
        }
        match self.store.drain(run.drain.account_id).await? {
            Some(drain) if drain.token == run.drain.token => run.called(drain),
            _ => return Ok(true),
        }
        Ok(false)
    }

    /// Notes which endpoints have become full, and which are full no longer. A run that hands its drain on does so about
    /// every five minutes, because counting reads the index.
    async fn measure(&self, run: &mut Run) -> Result<(), StoreError> {
        let now = self.clock.now();
        if now.seconds() % i64::from(MEASURE_EVERY_SECONDS) >= i64::try_from(BEGIN_FOR.as_secs()).unwrap_or(i64::MAX) {
            return Ok(());
        }
        for endpoint in run.found.values_mut().filter_map(|endpoint| endpoint.as_mut().ok()) {
            let waiting = self.store.count_waiting(endpoint.id, now, FULL_AT).await?;
            let entries = self.store.waiting(endpoint.id, false, READ_AHEAD).await?;
            let oldest = entries.iter().map(|entry| entry.at).find(|at| *at > at_once()).unwrap_or(now);
            match load(waiting, oldest, self.schedule.scaled(FULL_AFTER_SECONDS), now) {
                Load::Full if endpoint.full_since.is_none() => {
                    let notice = FullNotice::new(endpoint, waiting, oldest, now);
                    self.mark_full(endpoint, &notice).await;
                }
                Load::Eased if endpoint.full_since.is_some() => {
                    self.store.mark_not_full(endpoint).await?;
                }
                Load::Full | Load::Eased | Load::Between => {}
            }
        }
        Ok(())
    }

    async fn hand_on(&self, run: &Run) -> Result<(), StoreError> {
        let token = Token::random();
        let now = self.clock.now();
        if self.store.hand_on_drain(&run.drain, token, self.drains.lost_at(now), now).await? {
            self.drains.send(DrainCall { account_id: run.drain.account_id, token }).await;
        }
        Ok(())
    }
}

impl Run {
    fn new(drain: Drain, found: Found, begun_at: Timestamp) -> Self {
        let now = Instant::now();
        let mut run = Self {
            drain,
            begun: now,
            found: Found::new(),
            read_at: now,
            is_called: false,
            queues: BTreeMap::new(),
            ending: BTreeSet::new(),
            is_removing: false,
            looked_at: begun_at,
            has_drain: Arc::new(AtomicBool::new(true)),
            is_unsure: false,
            outcomes: Vec::new(),
        };
        run.read_again(found);
        run
    }

    /// Takes the endpoints as they are now. One that cannot be read is left for a later run.
    fn read_again(&mut self, found: Found) {
        self.is_unsure |= found.values().any(Result::is_err);
        self.queues.retain(|id, queue| queue.under_way > 0 || matches!(found.get(id), Some(Ok(_))));
        for (id, _) in found.iter().filter(|(_, endpoint)| endpoint.is_ok()) {
            self.queues.entry(*id).or_insert_with(|| EndpointQueue { looks: LOOKS, ..EndpointQueue::default() });
        }
        (self.found, self.read_at) = (found, Instant::now());
    }

    /// Takes the row as it is after another call.
    fn called(&mut self, drain: Drain) {
        (self.drain, self.is_called) = (drain, true);
        self.queues.values_mut().for_each(|queue| queue.looks = LOOKS);
    }

    fn is_looking(&self) -> bool {
        self.queues.values().any(|queue| queue.looks > 0)
    }
}
