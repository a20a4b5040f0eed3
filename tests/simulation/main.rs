//! Deliveries on AWS as it is, in simulated time.
//!
//! The functions that fan out, deliver and sweep run as they are deployed, behind pollers with Lambda's semantics. The
//! AWS side in memory has indexes that lag, refuses calls, loses answers, and delivers messages twice or late. Instances
//! stop anywhere, and their clocks are off.

mod histories;
mod judge;
mod receivers;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use judge::{Allowed, Verdict, judge};
use libtest_mimic::{Arguments, Trial};
use receivers::Behaviour;
use webhooks::Schedule;
use world::{Account, Adversity, World};

/// Lists tests by their names.
macro_rules! trials {
    ($($test:path),* $(,)?) => {
        vec![$(Trial::test(stringify!($test).rsplit(' ').next().unwrap(), || { $test(); Ok(()) })),*]
    };
}

fn main() {
    if histories::play_one_if_asked() {
        return;
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
        histories::histories_with_attempts_in_time,
        histories::histories_in_which_nothing_is_lost,
        histories::a_seed_gives_the_same_history_again,
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
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

/// Plays a history, and asserts that it is right and that nothing was later than this.
fn play(seed: u64, accounts: &[Account], adversity: Adversity, until: Duration, latest: Duration) {
    let verdict = simulate(seed, async { history(seed, accounts, adversity, until).await.1 });
    assert!(verdict.wrong.is_empty(), "{:?} with {adversity:?}", verdict.wrong);
    assert!(verdict.latest < latest, "{:?} late with {adversity:?}", verdict.latest);
}

/// Every look of a run used to take the first entries of the index for all: what had just ended stood in their place.
fn a_burst_to_a_new_endpoint_arrives_although_the_index_is_late() {
    for (millis, latency) in [(500, 100), (300, 100), (100, 5)] {
        let lag = Duration::from_millis(millis);
        let adversity = Adversity { index_lag: (lag, lag), ..Adversity::default() };
        let burst = [new_account(&[Behaviour::Steady(latency)], vec![seconds(1); 300])];
        play(1, &burst, adversity, seconds(120), seconds(3));
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
    for (seed, millis) in [(1, 2_500), (2, 2_500), (3, 5_000), (4, 5_000)] {
        let throttled_for = Duration::from_millis(millis);
        let adversity = Adversity { outages: 2, throttled_for, ..Adversity::default() };
        play(seed, &account, adversity, seconds(240), seconds(75));
    }
}

fn a_killed_run_does_not_stop_an_account() {
    let account = [new_account(&[Behaviour::Steady(4_000)], each_second(1, 120))];
    for seed in 0..4 {
        play(seed, &account, Adversity { kills: 2, ..Adversity::default() }, seconds(400), seconds(90));
    }
}

/// A drain that found nothing used to be over. What the index showed later was lost.
fn an_index_that_is_ten_minutes_late_loses_nothing() {
    let account = [new_account(&[Behaviour::Steady(100)], vec![seconds(1); 20])];
    for seed in [1, 3] {
        let adversity = Adversity { index_lag: (seconds(0), seconds(150 * (seed + 1))), ..Adversity::default() };
        play(seed, &account, adversity, seconds(3_600), seconds(3_600));
    }
}

/// Drains of a batch, each with ten endpoints that hang, used to have a hundred connections open each.
fn what_an_instance_lacks_is_not_the_failure_of_a_receiver() {
    let mut accounts = vec![new_account(&[Behaviour::Hanging; 10], vec![seconds(1); 11]); 7];
    accounts.push(new_account(&[Behaviour::Steady(100)], each_second(1, 30)));
    simulate(1, async {
        let adversity = Adversity { instances: Some(1), ..Adversity::default() };
        let (world, verdict) = history(1, &accounts, adversity, seconds(30)).await;
        assert!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
        let sent: Vec<_> = world.sent.lock().unwrap().keys().copied().collect();
        let mut errors = BTreeSet::new();
        for id in sent {
            let found = world.store.delivery(id).await.unwrap();
            errors.extend(found.into_iter().flat_map(|found| found.progress.attempts).filter_map(|made| made.error));
        }
        assert_eq!(errors, BTreeSet::from(["no answer within 10 s".to_owned()]));
    });
}

/// It used to end its run with all others unrecorded.
fn an_attempt_that_panics_costs_no_other_one() {
    let account = [new_account(&[Behaviour::Poisonous(100, 1.0), Behaviour::Steady(1_200)], vec![seconds(1); 30])];
    play(1, &account, Adversity::default(), seconds(120), seconds(3));
}

/// Plays a history. Returns the longest times between an event and its first POST, by receiver.
fn longest_waits(accounts: &[Account], instances: usize, until: Duration) -> BTreeMap<usize, Duration> {
    simulate(1, async {
        let adversity = Adversity { instances: Some(instances), ..Adversity::default() };
        let (world, verdict) = history(1, accounts, adversity, until).await;
        assert!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
        let mut first: BTreeMap<_, Duration> = BTreeMap::new();
        for post in &verdict.posts {
            first.entry(post.delivery).or_insert(post.begun);
        }
        let mut waits = BTreeMap::new();
        for (id, (receiver, at)) in world.sent.lock().unwrap().iter() {
            let wait: &mut Duration = waits.entry(*receiver).or_default();
            *wait = (*wait).max(first.get(id).copied().unwrap_or(until).saturating_sub(*at));
        }
        waits
    })
}

/// Three accounts have endpoints that hang, and one that does not.
fn endpoints_that_hang_delay_neither_other_accounts_nor_their_siblings() {
    let endpoints = [Behaviour::Hanging, Behaviour::Hanging, Behaviour::Hanging, Behaviour::Steady(20)];
    let mut accounts = vec![new_account(&endpoints, vec![seconds(1); 12]); 3];
    let healthy = Account { endpoints: vec![Behaviour::Steady(20)], events: each_second(1, 30), is_prompt: true };
    accounts.extend(vec![healthy; 3]);
    let waits = longest_waits(&accounts, 3, seconds(40));
    assert!([3, 7, 11].iter().all(|sibling| waits[sibling] < seconds(3)), "{waits:?}");
    assert!([12, 13, 14].iter().all(|other| waits[other] < seconds(1)), "{waits:?}");
}

/// Receivers that hang again and again used to occupy all instances, because one prompt answer made them prompt. Now each
/// does so once in five minutes.
fn receivers_that_hang_now_and_then_delay_no_other_account() {
    let flapping = Account { endpoints: vec![Behaviour::Flapping(7); 10], events: each_second(1, 80), is_prompt: true };
    let healthy = Account { endpoints: vec![Behaviour::Steady(20)], events: each_second(50, 80), is_prompt: true };
    let waits = longest_waits(&[flapping, healthy], 2, seconds(170));
    assert!(waits[&10] < seconds(1), "{waits:?}");
}
