//! Histories drawn from seeds: accounts, receivers and events of all kinds, and everything that AWS may do.
//!
//! `SEEDS=0..2000 cargo test --release -p tests --test simulation -- --nocapture histories` plays more of them. In a process
//! of its own, the same seed gives the same history, POST for POST.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;
use local::aws::{Faults, MAX_LATE};
use serde::{Deserialize, Serialize};

use crate::judge::Verdict;
use crate::processes::{play_all, play_apart};
use crate::receivers::Behaviour;
use crate::world::{Account, Adversity};
use crate::{history, seconds, seeds, simulate};

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

/// A kind of history.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    InTime,
    NothingLost,
}

/// What a process tells of its history.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Played {
    posts: usize,
    latest: Duration,
    latest_delivery: String,
    /// Differs if any POST of the history does.
    digest: u64,
    wrong: Vec<String>,
}

impl Kind {
    fn play(self, seed: u64) -> Verdict {
        let mut random = Rng::with_seed(seed);
        let (accounts, mut adversity) = (draw_accounts(&mut random), draw_adversity(&mut random));
        let mut until = seconds(UNTIL);
        if self == Self::NothingLost {
            adversity.clocks_off_seconds = 30;
            adversity.index_lag.1 = seconds(random.u64(2..600));
            until = seconds(2 * 3_600);
        }
        let verdict = simulate(seed, async { history(seed, &accounts, adversity, until).await.1 });
        // That a message comes late is not the service's doing.
        let late = if adversity.faults.late > 0.0 { MAX_LATE } else { Duration::ZERO };
        Verdict { latest: verdict.latest.saturating_sub(late), ..verdict }
    }

    /// Returns how late an attempt may be.
    fn most_late(self) -> Duration {
        if self == Self::InTime { LATE } else { VERY_LATE }
    }

    /// Plays histories on all cores. Asserts that nothing is wrong with them, and that nothing was too late.
    fn play_all(self, default: Range<u64>) {
        let mut all = Vec::new();
        let is_bad = |played: &Played| !played.wrong.is_empty() || played.latest > self.most_late();
        play_all(&format!("{self:?}"), seeds(default), |seed, played| {
            if is_bad(&played) {
                println!("seed {seed}: {played:?}");
            }
            all.push(played);
        });
        let bad = all.iter().filter(|played| is_bad(played)).count();
        let latest = all.iter().map(|played| played.latest).max().unwrap_or_default();
        let posts: usize = all.iter().map(|played| played.posts).sum();
        println!("{} histories, {posts} POSTs, the latest {latest:?} late, {bad} wrong", all.len());
        assert_eq!(bad, 0);
    }
}

/// Plays the history that a process was started for, of the kind with this name.
pub(crate) fn play(kind: &str, seed: u64) -> Played {
    let kind = if kind == "InTime" { Kind::InTime } else { Kind::NothingLost };
    let Verdict { wrong, latest, latest_delivery, posts } = kind.play(seed);
    let mut digest = DefaultHasher::new();
    format!("{posts:?}").hash(&mut digest);
    Played { posts: posts.len(), latest, latest_delivery, digest: digest.finish(), wrong }
}

pub(crate) fn histories_with_attempts_in_time() {
    Kind::InTime.play_all(0..8);
}

pub(crate) fn histories_in_which_nothing_is_lost() {
    Kind::NothingLost.play_all(0..4);
}

pub(crate) fn a_seed_gives_the_same_history_again() {
    let [one, again] = [(); 2].map(|()| play_apart::<Played>("InTime", 3));
    assert_eq!(one, again);
}
