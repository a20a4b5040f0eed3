//! Random histories that are played against the real code.

use proptest::prelude::Strategy;
use proptest::test_runner::{Config, TestRunner};

/// Plays `cases` random histories, one after the other. The first that panics is shrunk and shown.
pub fn play_histories<S: Strategy>(cases: u32, histories: &S, play: impl AsyncFn(S::Value)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let played = TestRunner::new(config).run(histories, |history| {
        runtime.block_on(play(history));
        Ok(())
    });
    played.unwrap();
}
