//! What the API shows, against an oracle: everything that the feed may report, in any order, two instances of every
//! function, compactions, restarts, lost bases, time that passes, and an AWS side that fails. Each answer is compared
//! with that of the oracle, byte for byte.
//!
//! Without faults, an answer shows everything that was acknowledged a second before. With faults it may be a 503, or be
//! two seconds old. Of what is reported at that time it may show any part. `reported` has the rule.

mod draw;
mod feed;
mod oracle;
mod records;
mod reported;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use api::routes::{CHANGES, ROUTES};
use common::records::{PublicItem, PublicListing};
use common::runtime::Worker;
use common::store::StoreError;
use local::aws::Faults;
use local::aws::limits::{Latency, Limits, ObjectLimits, Rate, Throughput};
use replica::base::{Columnar, Compacted, RebuildLimits, Thresholds};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use self::records::Change;
use self::world::World;
use crate::processes::play_all;
use crate::{seconds, seeds, simulate};

/// By how much every fourth market is larger than the others: enough for several blocks of each index, and for pages
/// deep inside a busy month of orders.
const LARGE: u32 = 60;
/// How many steps a history has.
const STEPS: u32 = 80;
/// Low enough that deltas, folds and rebuilds are due again and again.
const THRESHOLDS: Thresholds = Thresholds { min_changes: 4, records_per_change: 2, max_deltas: 3, most_deltas: 6 };
/// How long after the last fault a request may find the service unavailable.
const RECOVERY: Duration = Duration::from_secs(8);
const HOUR: Duration = Duration::from_hours(1);

/// How often each thing has happened.
pub(crate) type Counts = BTreeMap<String, u64>;

/// The name of this kind of history.
pub(crate) const KIND: &str = "Differential";

/// Plays histories, and prints what they have done so far after each.
pub(crate) fn every_answer_is_that_of_the_oracle() {
    let (seeds, mut histories, mut sum) = (seeds(0..2), 0, Counts::new());
    eprintln!("the seeds {seeds:?}");
    play_all(KIND, seeds, |seed, counts: Counts| {
        histories += 1;
        for (what, count) in counts {
            *sum.entry(what).or_default() += count;
        }
        eprintln!("{histories} histories, the last with the seed {seed}: {}", shown(&sum));
    });
    // Changes are told in the order of the log, which no oracle knows. `tests/it/changes.rs` plays them.
    let asked = ROUTES.iter().filter(|route| route.budget.is_some() && **route != CHANGES);
    asked.for_each(|route| assert!(sum.contains_key(route.function), "nobody asks {}", route.function));
}

fn shown(counts: &Counts) -> String {
    counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// Plays the history of a seed.
pub(crate) fn play(seed: u64) -> Counts {
    simulate(seed, async {
        let limits = if seed.is_multiple_of(2) { Limits::unlimited() } else { unhurried(seed) };
        let scale = if seed % 4 == 1 { LARGE } else { 1 };
        let world = World::start(seed, scale, limits).await;
        world.import(120 * scale).await;
        for _ in 0..STEPS {
            Box::pin(world.step(limits)).await;
        }
        world.end().await;
        world.counts.take()
    })
}

/// Returns limits that admit everything, with the latencies of AWS. Reads see halves of transactions.
fn unhurried(seed: u64) -> Limits {
    let aws = Limits::aws();
    Limits { latency: aws.latency, transaction_latency: aws.transaction_latency, seed, ..Limits::unlimited() }
}

impl World {
    async fn step(&self, limits: Limits) {
        let drawn = self.draw.borrow_mut().random.u32(0..100);
        match drawn {
            0..35 => self.report().await,
            35..55 => self.ask(20, seconds(1)).await,
            55..70 => self.compact().await,
            70..75 => self.restart(usize::from(drawn.is_multiple_of(2))),
            75..83 => self.let_time_pass().await,
            83..93 => Box::pin(self.trouble(limits)).await,
            93..96 => self.lose_base().await,
            _ => drop(tokio::join!(self.report(), self.compact())),
        }
        sleep(seconds(1)).await;
        self.ask_both(6).await;
        self.count("steps");
    }

    /// Imports changes, without a request meanwhile.
    async fn import(&self, count: u32) {
        let changes = self.draw_changes(count as usize);
        feed::import(&self.simulation, &self.messages(&changes)).await;
        self.reported.borrow_mut().acknowledge(self.simulation.elapsed());
    }

    /// Reports a burst of changes, by the queue or by an import, while clients ask.
    async fn report(&self) {
        let (changes, is_import) = (self.draw_burst(), self.draw.borrow_mut().random.bool());
        let report = async {
            if is_import {
                feed::import(&self.simulation, &self.messages(&changes)).await;
            } else {
                self.feed.send(&self.bodies(&changes)).await;
                self.feed.wait_until_empty().await;
            }
            self.reported.borrow_mut().acknowledge(self.simulation.elapsed());
        };
        tokio::join!(report, self.ask(4, Duration::from_millis(20)));
        self.count(if is_import { "imports" } else { "bursts" });
    }

    /// Draws changes. Half of the bursts are small, because answers can then be compared meanwhile. The others take
    /// `ingest` several batches.
    fn draw_burst(&self) -> Vec<Rc<Change>> {
        let count = {
            let random = &mut self.draw.borrow_mut().random;
            if random.bool() { random.usize(1..8) } else { random.usize(1..60) }
        };
        self.draw_changes(count)
    }

    fn draw_changes(&self, count: usize) -> Vec<Rc<Change>> {
        let changes = self.draw.borrow_mut().changes(count, self.wall());
        self.reported.borrow_mut().begin(&changes);
        changes
    }

    /// Returns the messages of changes, a few of them twice.
    fn messages(&self, changes: &[Rc<Change>]) -> Vec<Value> {
        let random = &mut self.draw.borrow_mut().random;
        let mut messages: Vec<Value> = Vec::new();
        for change in changes {
            for _ in 0..if random.u8(..) < 25 { 2 } else { 1 } {
                messages.push(change.message(random));
            }
        }
        random.shuffle(&mut messages);
        messages
    }

    /// Returns the messages as they are sent to the queue, and among them some that are refused.
    fn bodies(&self, changes: &[Rc<Change>]) -> Vec<String> {
        let mut bodies: Vec<String> = self.messages(changes).iter().map(Value::to_string).collect();
        let mut draw = self.draw.borrow_mut();
        if draw.chance(20)
            && let Some(change) = draw.contradiction(self.wall())
        {
            bodies.push(change.message(&mut draw.random).to_string());
            self.refused.borrow_mut().insert(bodies.last().unwrap().clone());
        }
        if draw.chance(20) {
            let mut message = changes[0].message(&mut draw.random);
            message["surprise"] = json!(draw.random.u64(..).to_string());
            bodies.push(message.to_string());
            self.refused.borrow_mut().insert(bodies.last().unwrap().clone());
        }
        draw.random.shuffle(&mut bodies);
        bodies
    }

    /// Runs the function as it is deployed, or one or two runs with low thresholds, which may die.
    async fn compact(&self) {
        let (is_deployed, runs, dies_after) = {
            let mut draw = self.draw.borrow_mut();
            let dies_after = if draw.chance(30) { draw.random.u64(0..400) } else { u64::MAX };
            (draw.chance(30), draw.random.u32(1..3), Duration::from_millis(dies_after))
        };
        if is_deployed {
            let host = self.simulation.host(self.simulation.clock());
            let function = host.function("compact", compact::worker).unwrap();
            let worked = Box::pin(function.work(Value::Null)).await;
            assert!(worked.is_ok() || self.is_in_trouble(), "{worked:?}");
            return self.count("runs of compact");
        }
        for _ in 0..runs {
            let items = timeout(dies_after, Box::pin(self.compaction::<PublicItem>()));
            let listings = timeout(dies_after, Box::pin(self.compaction::<PublicListing>()));
            let (items, listings) = tokio::join!(items, listings);
            for outcome in [items, listings] {
                let Ok(outcome) = outcome else {
                    self.count("killed runs");
                    continue;
                };
                assert!(outcome.is_ok() || self.is_in_trouble(), "{outcome:?}");
                self.count(match outcome {
                    Ok(Compacted::Idle { .. }) => "idle runs",
                    Ok(Compacted::Extended { .. }) => "deltas",
                    Ok(Compacted::Reading { .. }) => "parts of rebuilds",
                    Ok(Compacted::Written { from_entities: false, .. }) => "folds",
                    Ok(Compacted::Written { from_entities: true, .. }) => "rebuilds",
                    Ok(Compacted::Overtaken) => "overtaken runs",
                    Err(_) => "failed runs",
                });
            }
        }
    }

    async fn compaction<R: Columnar>(&self) -> Result<Compacted, StoreError> {
        // So little memory that a fold takes few deltas, and a rebuild sorts in many runs.
        let limits = RebuildLimits::at_once();
        self.simulation.compaction::<R>().with_thresholds(THRESHOLDS).with_limits(limits).run().await
    }

    fn is_in_trouble(&self) -> bool {
        self.simulation.elapsed() <= self.trouble_until.get()
    }

    async fn let_time_pass(&self) {
        let time = self.draw.borrow_mut().random.u32(0..6);
        match time {
            0 => sleep(seconds(30)).await,
            1 => self.simulation.skip(seconds(60)),
            2 => self.simulation.skip(HOUR),
            3 => self.simulation.skip(HOUR * 24),
            4 => self.simulation.skip(HOUR * 24 * 8),
            _ => self.simulation.skip(Duration::from_millis(1_500)),
        }
    }

    async fn lose_base(&self) {
        async fn lose<R: Columnar>(world: &World) {
            if world.simulation.log::<R>().standing().await.unwrap().manifest.is_some() {
                world.simulation.lose_base::<R>().await;
                world.count("lost bases");
            }
        }
        lose::<PublicItem>(self).await;
        lose::<PublicListing>(self).await;
    }

    /// Lets things go wrong for some seconds, while changes are reported and clients ask. Then the service recovers by
    /// itself.
    async fn trouble(&self, limits: Limits) {
        let (lasts, is_import, restarts, compacts) = {
            let mut draw = self.draw.borrow_mut();
            let lasts = Duration::from_millis(draw.random.u64(500..10_000));
            (lasts, draw.random.bool(), draw.chance(30), draw.chance(50))
        };
        if !is_import {
            let changes = self.draw_burst();
            self.feed.send(&self.bodies(&changes)).await;
        }
        self.trouble_until.set(Duration::MAX);
        self.begin_trouble(limits);
        let ends = async {
            sleep(lasts).await;
            self.simulation.aws.limits().set(limits);
            self.simulation.aws.faults().set(Faults::default());
            self.has_stops.set(false);
        };
        // An answer shows what was imported two seconds before, or is a 503.
        let until = self.simulation.elapsed() + lasts;
        let import = async {
            while is_import && self.simulation.elapsed() < until {
                self.import(3).await;
                sleep(Duration::from_millis(700)).await;
            }
        };
        let others = async {
            if restarts {
                self.restart(0);
            }
            if compacts {
                self.compact().await;
            }
        };
        tokio::join!(ends, import, others, self.ask(16, seconds(1)), self.ask(16, seconds(1)));
        self.feed.wait_until_empty().await;
        let now = self.simulation.elapsed();
        self.reported.borrow_mut().acknowledge(now);
        self.trouble_until.set(now + RECOVERY);
        self.ask(6, seconds(1)).await;
        sleep(RECOVERY).await;
        self.count("troubles");
    }

    fn begin_trouble(&self, limits: Limits) {
        let mut draw = self.draw.borrow_mut();
        let mut faults = Faults::default();
        let mut changed = limits;
        let kind = draw.random.u32(0..7);
        match kind {
            0 => faults.is_throttling = true,
            1 => faults.failed = draw.random.f64(),
            2 => faults.lost_answers = draw.random.f64() / 2.0,
            3 => (faults.duplicated, faults.late, faults.failed) = (0.5, 0.5, 0.2 * draw.random.f64()),
            4 => {
                let read = Rate { per_second: 2.0, burst: 4.0 };
                changed.partition = Throughput { read, write: Rate::UNLIMITED };
                changed.only_table = Some("marketplace-market");
            }
            5 => {
                let rate = Rate { per_second: 0.5, burst: 1.0 };
                changed.objects = ObjectLimits { gets: rate, puts: rate, ..ObjectLimits::UNLIMITED };
            }
            _ => {
                changed.latency = Latency { median: Duration::from_millis(20), p99: Duration::from_millis(900) };
                changed.transaction_latency = Latency::always(seconds(3));
                changed.lag = Duration::from_millis(draw.random.u64(0..1_500));
            }
        }
        self.has_stops.set(draw.chance(30));
        self.simulation.aws.limits().set(changed);
        self.simulation.aws.faults().set(faults);
    }

    /// Ends the history. Both instances and two new ones show everything, and exactly the bad messages are dead letters.
    async fn end(&self) {
        for _ in 0..2 {
            sleep(seconds(120)).await;
            self.reported.borrow_mut().acknowledge(self.simulation.elapsed());
            self.ask_both(40).await;
            (0..2).for_each(|number| self.restart(number));
        }
        let letters: BTreeSet<String> = self.feed.take_dead_letters().await;
        assert_eq!(letters, *self.refused.borrow());
        let counts = self.counts.borrow();
        assert!(counts.get("answers") > Some(&500), "few answers were compared: {}", shown(&counts));
    }
}
