//! Deliveries on AWS as it is, in simulated time.
//!
//! The functions that fan out, deliver and sweep run as they are deployed, behind pollers with Lambda's semantics. The
//! AWS side in memory has indexes that lag, refuses calls, loses answers, and delivers messages twice or late. Instances
//! stop anywhere, and their clocks are off.
//!
//! The module `differential` does such things to what the API shows, and compares each answer with that of an oracle.

mod differential;
mod histories;
mod judge;
mod processes;
mod receivers;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use judge::{Allowed, Verdict, judge};
use libtest_mimic::{Arguments, Trial};
use receivers::{Behaviour, Post};
use webhooks::{DELAYS_SECONDS, Schedule};
use world::{Account, Adversity, World};

/// Lists tests by their names.
macro_rules! trials {
    ($($test:path),* $(,)?) => {
        vec![$(Trial::test(stringify!($test).rsplit(' ').next().unwrap(), || { $test(); Ok(()) })),*]
    };
}

fn main() {
    match processes::asked() {
        Some((kind, seed)) if kind == differential::KIND => {
            return processes::tell(seed, move || differential::play(seed));
        }
        Some((kind, seed)) => return processes::tell(seed, move || histories::play(&kind, seed)),
        None => {}
    }
    let tests = trials![
        a_burst_to_a_new_endpoint_arrives_although_the_index_is_late,
        a_receiver_that_takes_more_than_a_second_is_slow,
        refused_calls_do_not_stop_an_account,
        a_killed_run_does_not_stop_an_account,
        an_index_that_is_ten_minutes_late_loses_nothing,
        what_an_instance_lacks_is_not_the_failure_of_a_receiver,
        an_attempt_that_panics_costs_no_other_one,
        endpoints_that_hang_delay_neither_other_accounts_nor_their_siblings,
        receivers_that_hang_now_and_then_delay_no_other_account,
        an_endpoint_that_hangs_costs_what_its_events_and_its_attempts_do,
        histories::histories_with_attempts_in_time,
        histories::histories_in_which_nothing_is_lost,
        histories::a_seed_gives_the_same_history_again,
        differential::every_answer_is_that_of_the_oracle,
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the seeds to play: the variable `SEEDS` if it is there.
fn seeds(default: Range<u64>) -> Range<u64> {
    std::env::var("SEEDS").map_or(default, |seeds| {
        let (from, to) = seeds.split_once("..").expect("SEEDS is a range, such as 0..100");
        from.parse().unwrap()..to.parse().unwrap()
    })
}

/// Runs a history on a paused clock, in which everything random comes from its seed.
fn simulate<T>(seed: u64, history: impl Future<Output = T>) -> T {
    fastrand::seed(seed);
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(history)
}

async fn history(seed: u64, accounts: &[Account], adversity: Adversity, until: Duration) -> (World, Verdict) {
    let world = World::start(seed, Schedule::default(), accounts, adversity, until).await;
    world.run_until(until).await;
    let allowed =
        Allowed { repeats: adversity != Adversity { index_lag: adversity.index_lag, ..Adversity::default() } };
    let verdict = judge(&world, Schedule::default(), allowed).await;
    (world, verdict)
}

/// Returns one account whose endpoints have not been tried yet.
fn new_account(endpoints: &[Behaviour], events: Vec<Duration>) -> Account {
    Account { endpoints: endpoints.to_vec(), events, is_prompt: false }
}

/// Returns one event per second.
fn each_second(from: u64, to: u64) -> Vec<Duration> {
    (from..to).map(seconds).collect()
}

/// Plays a history with each seed, and asserts that it is right and that nothing was later than this.
fn play(default: Range<u64>, accounts: &[Account], adversity: Adversity, until: Duration, latest: Duration) {
    for seed in seeds(default) {
        let verdict = simulate(seed, async { history(seed, accounts, adversity, until).await.1 });
        assert!(verdict.wrong.is_empty(), "seed {seed}: {:?} with {adversity:?}", verdict.wrong);
        assert!(verdict.latest < latest, "seed {seed}: {:?} late with {adversity:?}", verdict.latest);
    }
}

/// Every look of a run used to take the first entries of the index for all: what had just ended stood in their place.
fn a_burst_to_a_new_endpoint_arrives_although_the_index_is_late() {
    for (millis, latency) in [(500, 100), (300, 100), (100, 5)] {
        let lag = Duration::from_millis(millis);
        let adversity = Adversity { index_lag: (lag, lag), ..Adversity::default() };
        let burst = [new_account(&[Behaviour::Steady(latency)], vec![seconds(1); 300])];
        play(1..2, &burst, adversity, seconds(120), seconds(3));
    }
}

fn a_receiver_that_takes_more_than_a_second_is_slow() {
    let is_prompt = |latency| {
        let events = (0..20).map(|number| seconds(1 + 4 * number)).collect();
        let account = [Account { endpoints: vec![Behaviour::Steady(latency)], events, is_prompt: true }];
        simulate(1, async {
            let (world, _) = history(1, &account, Adversity::default(), seconds(120)).await;
            world.store.endpoints(world::user(0)).await.unwrap().readable[0].is_prompt
        })
    };
    assert_eq!([900, 1_200, 2_000, 2_800].map(is_prompt), [true, false, false, false]);
}

/// An error used to end a run, and with it the account's attempts for two and a half minutes.
fn refused_calls_do_not_stop_an_account() {
    let account = [new_account(&[Behaviour::Steady(4_000)], each_second(1, 120))];
    for throttled_for in [2_500, 5_000].map(Duration::from_millis) {
        let adversity = Adversity { outages: 2, throttled_for, ..Adversity::default() };
        play(1..3, &account, adversity, seconds(240), seconds(75));
    }
}

fn a_killed_run_does_not_stop_an_account() {
    let account = [new_account(&[Behaviour::Steady(4_000)], each_second(1, 120))];
    play(0..3, &account, Adversity { kills: 2, ..Adversity::default() }, seconds(400), seconds(90));
}

/// A drain that found nothing used to be over. What the index showed later was lost.
fn an_index_that_is_ten_minutes_late_loses_nothing() {
    let account = [new_account(&[Behaviour::Steady(100)], vec![seconds(1); 20])];
    let adversity = Adversity { index_lag: (seconds(0), seconds(600)), ..Adversity::default() };
    play(1..3, &account, adversity, seconds(7_200), seconds(3_600));
}

/// What could not be connected used to count as an attempt that failed.
fn what_an_instance_lacks_is_not_the_failure_of_a_receiver() {
    let mut accounts = vec![new_account(&[Behaviour::Hanging; 5], vec![seconds(1); 11]); 2];
    accounts.push(new_account(&[Behaviour::Steady(100)], each_second(1, 30)));
    let adversity = Adversity { instances: Some(1), connections: Some(40), ..Adversity::default() };
    for seed in seeds(1..2) {
        let (undialled, errors) = simulate(seed, undialled_and_errors(seed, &accounts, adversity));
        assert!(undialled > 0, "the instance had what it needs");
        assert_eq!(errors, BTreeSet::from(["no answer within 10 s".to_owned()]));
    }
}

async fn undialled_and_errors(seed: u64, accounts: &[Account], adversity: Adversity) -> (usize, BTreeSet<String>) {
    let (world, verdict) = history(seed, accounts, adversity, seconds(30)).await;
    assert!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
    let sent: Vec<_> = world.sent.lock().unwrap().keys().copied().collect();
    let mut errors = BTreeSet::new();
    for id in sent {
        let found = world.store.delivery(id).await.unwrap();
        errors.extend(found.into_iter().flat_map(|found| found.progress.attempts).filter_map(|made| made.error));
    }
    (world.receivers.undialled.load(Ordering::Relaxed), errors)
}

/// It used to end its run with all others unrecorded.
fn an_attempt_that_panics_costs_no_other_one() {
    let account = [new_account(&[Behaviour::Poisonous(100, 1.0), Behaviour::Steady(1_200)], vec![seconds(1); 30])];
    play(1..2, &account, Adversity::default(), seconds(120), seconds(3));
}

/// Plays a history. Returns the times between each event and its first POST, and between the time of a first retry and its
/// POST, by receiver. The longest come last.
fn waits(accounts: &[Account], instances: usize, until: Duration) -> BTreeMap<usize, Vec<Duration>> {
    simulate(1, async {
        let adversity = Adversity { instances: Some(instances), ..Adversity::default() };
        let (world, verdict) = history(1, accounts, adversity, until).await;
        assert!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
        let mut posts: BTreeMap<_, Vec<Post>> = BTreeMap::new();
        for post in verdict.posts {
            posts.entry(post.delivery).or_default().push(post);
        }
        let mut waits = BTreeMap::new();
        for (id, (receiver, at)) in world.sent.lock().unwrap().iter() {
            let posts = posts.remove(id).unwrap_or_default();
            let first = posts.first().map_or(until, |post| post.begun).saturating_sub(*at);
            let due = posts.first().and_then(|post| post.ended).map(|ended| ended + seconds(DELAYS_SECONDS[0].into()));
            let retry = due.zip(posts.get(1)).map(|(due, post)| post.begun.saturating_sub(due));
            let waits: &mut Vec<_> = waits.entry(*receiver).or_default();
            waits.extend([first].into_iter().chain(retry));
            waits.sort_unstable();
        }
        waits
    })
}

/// Twelve accounts have nine endpoints that hang each, and one that does not. Twenty others have events all the time, and
/// retries. One more gets an endpoint meanwhile. Prompt receivers wait as long as without those that hang.
fn endpoints_that_hang_delay_neither_other_accounts_nor_their_siblings() {
    let healthy = Behaviour::DownUntil(20, seconds(3));
    let healthy = Account { endpoints: vec![healthy], events: each_second(1, 20), is_prompt: true };
    let mut accounts = vec![healthy; 20];
    accounts.push(new_account(&[Behaviour::Steady(20)], vec![seconds(15)]));
    let undisturbed = waits(&accounts, 13, seconds(40));
    let mut endpoints = vec![Behaviour::Hanging; 9];
    endpoints.push(Behaviour::Steady(20));
    accounts.extend(vec![new_account(&endpoints, vec![seconds(1); 10]); 12]);
    let disturbed = waits(&accounts, 13, seconds(40));
    let p99_of_prompt = |waits: &BTreeMap<usize, Vec<Duration>>| {
        let mut all: Vec<Duration> = waits.range(..20).flat_map(|(_, waits)| waits).copied().collect();
        all.sort_unstable();
        println!("first attempts and retries of prompt receivers: {:?} at the median", all[all.len() / 2]);
        all[all.len() * 99 / 100]
    };
    let [before, beside] = [&undisturbed, &disturbed].map(p99_of_prompt);
    println!("{before:?} at p99, {beside:?} beside receivers that hang");
    assert!(beside < before.mul_f64(1.2), "{beside:?} instead of {before:?}");
    let longest = |receiver: usize| disturbed[&receiver].last().unwrap();
    assert!(*longest(20) < seconds(3), "the new endpoint: {:?}", longest(20));
    for sibling in (30..141).step_by(10) {
        assert!(*longest(sibling) < seconds(3), "sibling {sibling}: {:?}", longest(sibling));
    }
}

/// Receivers that hang again and again used to occupy all instances, because one prompt answer made them prompt. Now each
/// does so once in five minutes.
fn receivers_that_hang_now_and_then_delay_no_other_account() {
    let flapping = Account { endpoints: vec![Behaviour::Flapping(7); 10], events: each_second(1, 80), is_prompt: true };
    let healthy = Account { endpoints: vec![Behaviour::Steady(20)], events: each_second(50, 80), is_prompt: true };
    let waits = waits(&[flapping, healthy], 2, seconds(170));
    assert!(waits[&10].last() < Some(&seconds(1)), "{:?}", waits[&10]);
}

/// It gets one attempt a second, however many events it has. What it costs is in the documents.
fn an_endpoint_that_hangs_costs_what_its_events_and_its_attempts_do() {
    let write_units = |events_a_second: u32| {
        simulate(1, async {
            let events = (1..200 * events_a_second).map(|number| number * seconds(1) / events_a_second).collect();
            let account = [new_account(&[Behaviour::Hanging], events)];
            let world = World::start(1, Schedule::default(), &account, Adversity::default(), seconds(200)).await;
            world.run_until(seconds(100)).await;
            world.simulation.meter.take();
            world.run_until(seconds(200)).await;
            let bill = world.simulation.meter.take();
            println!("{events_a_second} events a second: {bill:?}");
            bill.write_units / 100.0
        })
    };
    let [once, thrice] = [1, 3].map(write_units);
    let of_an_event = (thrice - once) / 2.0;
    assert!(of_an_event < 5.0, "{of_an_event} write units for each event");
    assert!(once - of_an_event < 12.0, "{} a second for the attempts", once - of_an_event);
}
