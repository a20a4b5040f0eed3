//! Histories in processes of their own. There, everything random comes from the seed, the order in hash maps included: the
//! same seed gives the same history again.

use std::ops::Range;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The variable by which a process is told to play one history: its kind and its seed.
const HISTORY: &str = "HISTORY";
/// How many processes play at the same time.
const PROCESSES: usize = 2;

/// Returns the kind and the seed of the history that this process was started for, if it was.
pub(crate) fn asked() -> Option<(String, u64)> {
    let asked = std::env::var(HISTORY).ok()?;
    let (kind, seed) = asked.split_once(' ').unwrap();
    Some((kind.to_owned(), seed.parse().unwrap()))
}

/// Plays a history in this process, and tells the one that started it what it returns.
pub(crate) fn tell<P: Serialize + Send + 'static>(seed: u64, play: impl FnOnce() -> P + Send + 'static) {
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(seed));
    // What this thread has drawn before does not count in another one.
    let played = thread::spawn(play).join().unwrap();
    println!("{}", serde_json::to_string(&played).unwrap());
}

/// Plays a history in a process of its own.
pub(crate) fn play_apart<P: DeserializeOwned>(kind: &str, seed: u64) -> P {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.env(HISTORY, format!("{kind} {seed}")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let played = told.lines().find_map(|line| serde_json::from_str(line).ok());
    played.unwrap_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        panic!("seed {seed} (again with SEEDS={seed}..{}): {told}{error}", seed + 1)
    })
}

/// Plays the histories of these seeds, several at a time. `done` gets what each returns.
pub(crate) fn play_all<P: DeserializeOwned>(kind: &str, seeds: Range<u64>, done: impl FnMut(u64, P) + Send) {
    let (left, done) = (Mutex::new(seeds), Mutex::new(done));
    let worker = || {
        while let Some(seed) = { left.lock().unwrap().next() } {
            let played = play_apart(kind, seed);
            done.lock().unwrap()(seed, played);
        }
    };
    thread::scope(|scope| (0..PROCESSES).for_each(|_| drop(scope.spawn(worker))));
}
