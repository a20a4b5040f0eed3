//! Bases that grow by many deltas, are folded and made anew, by runs that overlap, beside instances that follow. Whatever
//! they do, a start reads from the base what the entities say, and an instance answers exactly or with a 503.
//!
//! By its seed, a history has any of three [`Adversaries`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::records::PublicListing;
use common::scope::Scope;
use common::store::StoreError;
use local::aws::limits::{Latency, Limits, ObjectLimits};
use local::simulation::SimulatedInstance;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use replica::base::{Compacted, Compaction, RebuildLimits, Thresholds};
use serde_json::Value;
use tests::{Adversaries, Simulation, histories, listing, shown, sold_listing, uuid};
use tokio::time::sleep;

/// Low enough that some rounds do everything.
const THRESHOLDS: Thresholds = Thresholds { min_changes: 4, records_per_change: 1, max_deltas: 3, most_deltas: 6 };
/// The next delta of such a base takes in others, but it is hardly ever folded.
const NO_FOLDS: Thresholds = Thresholds { min_changes: 0, records_per_change: 1, max_deltas: 3, most_deltas: 6 };
const LISTINGS: u32 = 24;
/// In every second history so few change that changes often undo others.
const FEW_LISTINGS: u32 = 2;
const HOUR: Duration = Duration::from_hours(1);

/// Something that happens to a stream.
#[derive(Clone, Debug)]
enum Event {
    /// These listings change while an instance is asked and another one starts: to one of two prices, or they are sold.
    Change(Vec<(u32, u8)>),
    /// One run, or two at the same time.
    Compact {
        runs: u8,
    },
    /// Two runs at the same time, and changes while they go on.
    CompactBesideChanges(Vec<(u32, u8)>),
    /// A repair makes a base and begins the stream anew with it, beside a run.
    BeginAnew,
    Wait {
        days: u8,
    },
    /// The objects of the base are overwritten.
    LoseBase,
}

fn changes() -> impl Strategy<Value = Vec<(u32, u8)>> {
    prop::collection::vec((0..LISTINGS, 0..3_u8), 1..8)
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => changes().prop_map(Event::Change),
        4 => (1..3_u8).prop_map(|runs| Event::Compact { runs }),
        2 => changes().prop_map(Event::CompactBesideChanges),
        1 => prop_oneof![Just(0), Just(8), Just(15)].prop_map(|days| Event::Wait { days }),
        2 => Just(Event::BeginAnew),
        2 => Just(Event::LoseBase),
    ];
    prop::collection::vec(event, 8..40)
}

/// How many histories are played: some 380 events, and each thing that a run can do many times.
const HISTORIES: u32 = 16;

/// A stream with the number of changes that it has had, and the prices of the listings that it must show.
struct Model {
    simulation: Simulation,
    adversaries: Adversaries,
    key: String,
    instances: [SimulatedInstance; 2],
    version: u64,
    listings: u32,
    prices: BTreeMap<String, String>,
    /// Whether there is no base, or one that cannot be read.
    is_lost: bool,
    done: BTreeSet<&'static str>,
}

impl Model {
    async fn new(seed: u64) -> Self {
        let (simulation, adversaries) = (Simulation::new().await, Adversaries::new(seed, "marketplace-market"));
        let key = simulation.key(&[Scope::ListingsRead]).await;
        let instances = [(); 2].map(|()| simulation.cold("listings", listings::api));
        simulation.aws.limits().set(adversaries.limits);
        let (prices, done) = (BTreeMap::new(), BTreeSet::new());
        let listings = if seed.is_multiple_of(2) { LISTINGS } else { FEW_LISTINGS };
        Self { simulation, adversaries, key, instances, version: 0, listings, prices, is_lost: true, done }
    }

    fn compaction(&self) -> Compaction<PublicListing> {
        // So little memory that a fold takes one delta, and a rebuild sorts in many runs.
        let limits = RebuildLimits::at_once();
        self.simulation.compaction().with_thresholds(THRESHOLDS).with_limits(limits)
    }

    fn narrowed(&self, changes: &[(u32, u8)]) -> Vec<(u32, u8)> {
        changes.iter().map(|(number, state)| (number % self.listings, *state)).collect()
    }

    /// Returns messages that are newer than all before.
    fn messages(&mut self, changes: &[(u32, u8)]) -> Vec<Value> {
        let message = |(number, state): &(u32, u8)| {
            self.version += 1;
            let (id, price) = (uuid(u128::from(*number)).to_string(), ["1.00", "2.00"].get(usize::from(*state)));
            let Some(price) = price else {
                self.prices.remove(&id);
                return sold_listing(*number, self.version);
            };
            self.prices.insert(id, (*price).to_owned());
            listing(*number, price, "2026-11-20T10:00:00Z", self.version)
        };
        changes.iter().map(message).collect()
    }

    /// Asserts that a start reads what was written.
    async fn assert_base(&self) {
        let read = self.simulation.read_base::<PublicListing>().await;
        let read: BTreeMap<_, _> = read.iter().map(|one| (one.id.to_string(), one.price_usd.to_string())).collect();
        assert_eq!(read, self.prices);
    }

    /// Feeds messages. Some change nothing: a later one of the same batch is about the same listing, or the listing that
    /// is sold is not there. What is refused comes again, as from the queue.
    async fn feed(&self, messages: &[Value]) {
        let stores = self.simulation.admin.stores();
        while self.simulation.try_to_feed(stores.clone(), messages).await.iter().any(Result::is_err) {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Writes changes beside an instance that follows and one that starts. Both show what does not change.
    async fn change(&mut self, changes: &[(u32, u8)]) {
        let ids: BTreeSet<_> = changes.iter().map(|(number, _)| uuid((*number).into()).to_string()).collect();
        let unchanged = |mut prices: BTreeMap<String, String>| {
            prices.retain(|id, _| !ids.contains(id));
            prices
        };
        let before = unchanged(self.prices.clone());
        let messages = self.messages(changes);
        self.instances[1] = self.simulation.cold("listings", listings::api);
        let [one, other] = &self.instances;
        let one = self.adversaries.run(shown(one, &self.key));
        let other = self.adversaries.run(shown(other, &self.key));
        let (one, other, ()) = tokio::join!(one, other, self.feed(&messages));
        for asked in [one, other].into_iter().flatten() {
            assert_eq!(unchanged(asked), before);
        }
    }

    async fn happen(&mut self, event: &Event) {
        match event {
            Event::Change(changes) => {
                self.change(&self.narrowed(changes)).await;
            }
            Event::Compact { runs: 1 } => {
                let one = self.compaction();
                let outcome = self.adversaries.run(one.run()).await;
                self.note(&[outcome]);
            }
            Event::Compact { .. } => {
                let (one, other) = (self.compaction(), self.compaction());
                let (one, other) = (self.adversaries.run(one.run()), self.adversaries.run(other.run()));
                let (one, other) = tokio::join!(one, other);
                self.note(&[one, other]);
            }
            Event::CompactBesideChanges(changes) => {
                let messages = self.messages(&self.narrowed(changes));
                let (one, other) = (self.compaction(), self.compaction());
                let (one, other) = (self.adversaries.run(one.run()), self.adversaries.run(other.run()));
                let (one, other, ()) = tokio::join!(one, other, self.feed(&messages));
                self.note(&[one, other]);
            }
            Event::BeginAnew => {
                self.simulation.aws.limits().lift();
                let seq = self.simulation.log::<PublicListing>().head().await.unwrap() + 2;
                self.simulation.aws.limits().set(self.adversaries.limits);
                let (one, other) = (self.compaction(), self.compaction());
                let one = self.adversaries.run(one.begin_anew(seq));
                let other = self.adversaries.run(other.run());
                let asked = async {
                    for _ in 0..2 {
                        self.compare().await;
                        sleep(Duration::from_secs(2)).await;
                    }
                };
                let (one, other, ()) = tokio::join!(one, other, asked);
                if let Ok(Compacted::Written { .. }) = one {
                    self.done.insert("begun anew");
                }
                self.remember(&[one, other]);
            }
            Event::LoseBase => {
                self.simulation.aws.limits().lift();
                if !self.is_lost {
                    self.simulation.lose_base::<PublicListing>().await;
                    self.is_lost = true;
                }
                self.simulation.aws.limits().set(self.adversaries.limits);
            }
            Event::Wait { days } => self.simulation.skip(HOUR * 24 * u32::from(*days) + HOUR),
        }
    }

    /// Notes what runs at the same time did. Unless an adversary holds them up, none fails, and one gets through.
    fn note(&mut self, outcomes: &[Result<Compacted, StoreError>]) {
        if self.adversaries.hold_up_nothing() {
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
            assert!(outcomes.iter().any(|outcome| !matches!(outcome, Ok(Compacted::Overtaken))), "{outcomes:?}");
        }
        self.remember(outcomes);
    }

    fn remember(&mut self, outcomes: &[Result<Compacted, StoreError>]) {
        self.is_lost &= !outcomes.iter().any(|one| matches!(one, Ok(Compacted::Written { from_entities: true, .. })));
        self.done.extend(outcomes.iter().map(|outcome| match outcome {
            Ok(Compacted::Idle { .. }) => "idle",
            Ok(Compacted::Extended { .. }) => "extended",
            Ok(Compacted::Reading { .. }) => "reading",
            Ok(Compacted::Written { from_entities: false, .. }) => "folded",
            Ok(Compacted::Written { from_entities: true, .. }) => "rebuilt",
            Ok(Compacted::Overtaken) => "overtaken",
            Err(_) => "failed",
        }));
    }

    /// Asks every instance once all that was written is old enough to be shown.
    async fn ask(&mut self) {
        // Longer than an answer may lag, so that a minute's budget is enough.
        sleep(Duration::from_secs(5)).await;
        self.compare().await;
    }

    /// Asks every instance. Each shows what was written, or answers 503.
    async fn compare(&mut self) {
        for instance in &self.instances {
            match self.adversaries.run(shown(instance, &self.key)).await {
                Some(prices) => assert_eq!(prices, self.prices),
                None => assert!(!self.adversaries.hold_up_nothing(), "503 without a reason"),
            }
        }
    }

    /// Plays a history. Returns what its runs did.
    async fn play(seed: u64, events: &[Event]) -> BTreeSet<&'static str> {
        let mut model = Self::new(seed).await;
        for event in events {
            Box::pin(model.happen(event)).await;
            Box::pin(model.ask()).await;
            model.simulation.aws.limits().lift();
            if !model.is_lost {
                model.assert_base().await;
            }
            model.simulation.aws.limits().set(model.adversaries.limits);
            let standing = model.simulation.log::<PublicListing>().standing().await.unwrap();
            if standing.manifest.is_some_and(|manifest| manifest.unwrap().deltas.len() > 1) {
                model.done.insert("several deltas");
            }
        }
        model.simulation.aws.limits().lift();
        model.adversaries.has_stops = false;
        if model.is_lost {
            model.simulation.skip(HOUR * 24 * 15);
            model.compaction().run().await.unwrap();
        }
        model.simulation.assert_base_is_exact::<PublicListing>().await;
        sleep(Duration::from_mins(1)).await;
        for instance in &model.instances {
            assert_eq!(shown(instance, &model.key).await.as_ref(), Some(&model.prices), "a 503 that does not end");
        }
        model.done
    }
}

fn play(seed: u64, events: &[Event]) -> BTreeSet<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(Model::play(seed, events))
}

/// Random histories have several deltas beside a base too seldom for every test run to see them.
fn few_changes_to_many_listings() -> Vec<Event> {
    let first = [Event::Change((0..LISTINGS).map(|number| (number, 0)).collect()), Event::Compact { runs: 1 }];
    let change = |price| [Event::Change((0..5).map(|number| (number, price)).collect()), Event::Compact { runs: 1 }];
    first.into_iter().chain([1, 0, 1].into_iter().flat_map(change)).collect()
}

#[test]
fn a_start_reads_what_the_entities_say_whatever_runs_do_to_the_base() {
    let done = RefCell::new(play(0, &few_changes_to_many_listings()));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(histories(HISTORIES)));
    let played = runner.run(&(any::<u64>(), events()), |(seed, events)| {
        done.borrow_mut().extend(play(seed, &events));
        Ok(())
    });
    played.unwrap();
    let all = ["begun anew", "extended", "folded", "idle", "overtaken", "rebuilt", "several deltas"];
    let done = done.into_inner();
    assert!(done.is_superset(&BTreeSet::from(all)), "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn of_two_equal_deltas_the_newer_one_has_the_last_word() {
    let simulation = Simulation::new().await;
    let compaction = simulation.compaction::<PublicListing>().with_thresholds(NO_FOLDS);
    let prices =
        |price, version| (0..9).map(|number| listing(number, price, "2026-11-20T10:00:00Z", version)).collect();
    let all: Vec<Value> = (0..90).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    simulation.feed(&all).await;
    compaction.run().await.unwrap();
    for (version, price) in [(2, "2.00"), (3, "3.00"), (4, "2.00")] {
        let changed: Vec<Value> = prices(price, version);
        simulation.feed(&changed).await;
        let outcome = compaction.run().await.unwrap();
        assert!(matches!(outcome, Compacted::Extended { .. }), "{outcome:?}");
    }
    let manifest = simulation.log::<PublicListing>().standing().await.unwrap().manifest.unwrap().unwrap();
    let [first, _, third] = manifest.deltas.as_slice() else { panic!("{manifest:?}") };
    assert_eq!(first.object.hash, third.object.hash);
    simulation.assert_base_is_exact::<PublicListing>().await;
}

#[tokio::test(start_paused = true)]
async fn a_delta_that_takes_in_others_says_what_they_say() {
    let simulation = Simulation::new().await;
    let compaction = simulation.compaction::<PublicListing>().with_thresholds(NO_FOLDS);
    let changed = |number, version| listing(number, &format!("{version}.00"), "2026-11-20T10:00:00Z", version);
    let all: Vec<Value> = (0..20).map(|number| changed(number, 1)).collect();
    simulation.feed(&all).await;
    compaction.run().await.unwrap();
    let mut deltas = Vec::new();
    for version in 2..6 {
        // Each delta has a listing of its own, and one that every delta has.
        let number = u32::try_from(version).unwrap();
        simulation.feed(&[changed(number, version), changed(10, version)]).await;
        compaction.run().await.unwrap();
        let standing = simulation.log::<PublicListing>().standing().await.unwrap();
        deltas.push(standing.manifest.unwrap().unwrap().deltas.len());
        simulation.assert_base_is_exact::<PublicListing>().await;
    }
    assert_eq!(deltas, [1, 2, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_fold_takes_over_the_delta_that_came_meanwhile() {
    let simulation = Simulation::new().await;
    let messages = |numbers: std::ops::Range<u32>| -> Vec<Value> {
        numbers.map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect()
    };
    let sooner = Thresholds { records_per_change: 2, ..THRESHOLDS };
    let folding = simulation.compaction::<PublicListing>().with_thresholds(sooner);
    let extending = simulation.compaction::<PublicListing>().with_thresholds(NO_FOLDS);
    simulation.feed(&messages(0..40)).await;
    folding.run().await.unwrap();
    simulation.feed(&messages(40..62)).await;
    let objects = ObjectLimits { first_byte: Latency::always(Duration::from_millis(400)), ..ObjectLimits::UNLIMITED };
    simulation.aws.limits().set(Limits { objects, ..Limits::unlimited() });
    let meanwhile = async {
        // The fold has put its delta, and reads deltas and parts.
        sleep(Duration::from_millis(500)).await;
        simulation.feed(&messages(62..65)).await;
        extending.run().await.unwrap()
    };
    let (folded, extended) = tokio::join!(folding.run(), meanwhile);
    assert_eq!(folded.unwrap(), Compacted::Written { records: 62, parts: 1, from_entities: false });
    assert_eq!(extended, Compacted::Extended { changes: 25 });
    let manifest = simulation.log::<PublicListing>().standing().await.unwrap().manifest.unwrap().unwrap();
    assert_eq!((manifest.records, manifest.deltas.len()), (62, 1));
    assert_eq!(manifest.end, manifest.deltas[0].end);
    simulation.assert_base_is_exact::<PublicListing>().await;
}

#[tokio::test(start_paused = true)]
async fn a_fold_does_not_undo_a_newer_one_whose_parts_are_the_same() {
    let simulation = Simulation::new().await;
    let price = |price, version| [listing(1, price, "2026-11-20T10:00:00Z", version)];
    let at_once = Thresholds { min_changes: 0, records_per_change: 1_000, ..THRESHOLDS };
    let (slow, quick) = (simulation.compaction::<PublicListing>(), simulation.compaction::<PublicListing>());
    let (slow, quick) = (slow.with_thresholds(at_once), quick.with_thresholds(at_once));
    simulation.feed(&price("1.00", 1)).await;
    quick.run().await.unwrap();
    simulation.feed(&price("2.00", 2)).await;
    let first_byte = Latency::always(Duration::from_millis(400));
    let objects = ObjectLimits { first_byte, ..ObjectLimits::UNLIMITED };
    simulation.aws.limits().set(Limits { objects, ..Limits::unlimited() });
    let meanwhile = async {
        // The slow fold has put its delta. Now it reads the delta and the part.
        sleep(Duration::from_millis(500)).await;
        simulation.aws.limits().set(Limits::unlimited());
        simulation.feed(&price("1.00", 3)).await;
        quick.run().await.unwrap()
    };
    let (late, folded) = tokio::join!(slow.run(), meanwhile);
    assert_eq!(folded, Compacted::Written { records: 1, parts: 1, from_entities: false });
    assert_eq!(late.unwrap(), Compacted::Overtaken);
    simulation.assert_base_is_exact::<PublicListing>().await;
}
