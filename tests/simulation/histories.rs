//! Histories drawn from seeds: accounts, receivers and events of all kinds, and everything that AWS may do.
//!
//! `SEEDS=0..2000 cargo test --release -p tests --test simulation -- --nocapture histories` plays more of them.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use local::aws::{Faults, MAX_LATE};

use crate::judge::Verdict;
use crate::receivers::Behaviour;
use crate::world::{Account, Adversity};
use crate::{history, seconds, simulate};

/// What is due is attempted within this time, plus what its receiver needs for what came before it.
const LATE: Duration = Duration::from_secs(90);
/// The same if indexes are up to ten minutes late: a drain sleeps for three times as long as it was not called.
const VERY_LATE: Duration = Duration::from_hours(1);
/// Events come within this time, and the history goes on for as long as their last retry within an hour needs.
const EVENTS_UNTIL: u64 = 120;
const UNTIL: u64 = 900;

fn draw_behaviour(random: &mut Rng) -> Behaviour {
    match random.u32(0..100) {
        0..45 => Behaviour::Steady(random.u64(5..1_000)),
        45..60 => Behaviour::Steady(random.u64(1_000..5_000)),
        60..70 => Behaviour::Hanging,
        70..80 => Behaviour::DownUntil(random.u64(5..500), seconds(random.u64(0..EVENTS_UNTIL))),
        80..95 => Behaviour::Failing(random.u64(5..500), 0.5 * random.f64()),
        _ => Behaviour::Poisonous(random.u64(5..500), 0.5 * random.f64()),
    }
}

fn draw_events(random: &mut Rng) -> Vec<Duration> {
    let mut events = Vec::new();
    for _ in 0..random.u32(1..4) {
        let at = Duration::from_millis(random.u64(0..1_000 * EVENTS_UNTIL));
        match random.u32(0..3) {
            0 => events.extend(vec![at; random.usize(1..100)]),
            1 => events.extend((0..random.u32(1..40)).map(|number| at + number * Duration::from_millis(500))),
            _ => events.push(at),
        }
    }
    events
}

fn draw_accounts(random: &mut Rng) -> Vec<Account> {
    let account = |random: &mut Rng| Account {
        endpoints: (0..random.u32(1..4)).map(|_| draw_behaviour(random)).collect(),
        events: draw_events(random),
        is_prompt: random.bool(),
    };
    (0..random.u32(1..4)).map(|_| account(random)).collect()
}

/// Draws what goes wrong while attempts still have to be made in time.
fn draw_adversity(random: &mut Rng) -> Adversity {
    let most = random.u64(0..2_000);
    let least = if random.bool() { most } else { 0 };
    let share = |random: &mut Rng, most: f64| if random.bool() { most * random.f64() } else { 0.0 };
    Adversity {
        index_lag: (Duration::from_millis(least), Duration::from_millis(most)),
        faults: Faults {
            failed: share(random, 0.01),
            lost_answers: share(random, 0.01),
            duplicated: share(random, 0.1),
            late: share(random, 0.1),
            ..Faults::default()
        },
        throttled_for: Duration::from_millis(random.u64(0..5_000)),
        outages: random.u32(0..3),
        kills: random.u32(0..4),
        ..Adversity::default()
    }
}

/// Plays histories on all cores. Returns those that show something wrong.
fn play(default: Range<u64>, late: Duration, play: impl Fn(u64) -> Verdict + Sync) -> Vec<(u64, Verdict)> {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| {
        let (from, to) = seeds.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let seeds = seeds.unwrap_or(default);
    let next = AtomicU64::new(seeds.start);
    let (posts, latest) = (AtomicUsize::new(0), Mutex::new(Duration::ZERO));
    let worker = || {
        let mut bad = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return bad;
            }
            let verdict = play(seed);
            posts.fetch_add(verdict.posts, Ordering::Relaxed);
            let mut latest = latest.lock().unwrap();
            *latest = verdict.latest.max(*latest);
            drop(latest);
            if !verdict.wrong.is_empty() || verdict.latest > late {
                println!("seed {seed}: {verdict:?}");
                bad.push((seed, verdict));
            }
        }
    };
    let bad: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let (posts, latest) = (posts.into_inner(), latest.into_inner().unwrap());
    println!("{} histories, {posts} POSTs, the latest {latest:?} late, {} wrong", seeds.end - seeds.start, bad.len());
    bad
}

#[test]
fn histories_with_attempts_in_time() {
    let bad = play(0..8, LATE, |seed| {
        let mut random = Rng::with_seed(seed);
        let (accounts, adversity) = (draw_accounts(&mut random), draw_adversity(&mut random));
        let verdict = simulate(seed, async { history(seed, &accounts, adversity, seconds(UNTIL)).await.1 });
        // That a message comes late is not the service's doing.
        let late = if adversity.faults.late > 0.0 { MAX_LATE } else { Duration::ZERO };
        Verdict { latest: verdict.latest.saturating_sub(late), ..verdict }
    });
    assert!(bad.is_empty(), "{} histories", bad.len());
}

#[test]
fn histories_in_which_nothing_is_lost() {
    let bad = play(0..4, VERY_LATE, |seed| {
        let mut random = Rng::with_seed(seed);
        let (accounts, mut adversity) = (draw_accounts(&mut random), draw_adversity(&mut random));
        adversity.clocks_off_seconds = 30;
        adversity.index_lag.1 = seconds(random.u64(2..600));
        simulate(seed, async { history(seed, &accounts, adversity, seconds(2 * 3_600)).await.1 })
    });
    assert!(bad.is_empty(), "{} histories", bad.len());
}
