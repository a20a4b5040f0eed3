//! What a writer of a stream remembers from one transaction to the next: the stream's head, and when its turn is.
//!
//! All writers of a stream move the same head, so one wins and the others lose. The winner knows the new head, so it goes
//! on at once and wins again. After some wins it pauses, so that another one can begin its own run of wins. Runs cost
//! less than races for each transaction: two writers commit nearly as much as one.

use std::time::Duration;

use common::backoff::full_jitter;
use tokio::time::Instant;

/// A writer that has lost a race pauses after this many transactions, for [`LONGEST_PAUSE`]. Even a writer whose
/// transactions take much longer then gets its turn.
const SHARED_WINS: u32 = 16;
/// After this many without a loss, it takes itself for the only writer. It cannot see that others lose, so it still
/// pauses after each of this many, for as long as four transactions take.
const UNDISTURBED_WINS: u32 = 32;
const UNDISTURBED_PAUSE_TURNS: u32 = 4;
/// No pause begins with a shorter transaction than this.
const SHORTEST_TURN: Duration = Duration::from_millis(2);
/// The longest pause. In a longer one, the head that a writer knows would only grow old.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How often the ceiling of the pauses after conflicts doubles: they must be short beside the winner's pause.
const CONFLICT_DOUBLINGS: u32 = 2;
/// How often that of the pauses after throttling doubles. That is enough to reach [`LONGEST_PAUSE`].
const THROTTLE_DOUBLINGS: u32 = 6;

/// A writer of one stream.
#[derive(Debug)]
pub struct Writer {
    /// The sequence number of the last batch, as far as this writer knows.
    head: Option<u64>,
    /// How many transactions it has committed since it last lost a race.
    wins: u32,
    /// How often its transactions have met others or were throttled since the last one that was not.
    conflicts: u32,
    /// When it sent its last transaction, and how long that took.
    sent: Instant,
    turn: Duration,
    /// When it may send the next one.
    next: Instant,
}

impl Default for Writer {
    fn default() -> Self {
        let now = Instant::now();
        Self { head: None, wins: UNDISTURBED_WINS, conflicts: 0, sent: now, turn: SHORTEST_TURN, next: now }
    }
}

impl Writer {
    /// Makes a writer that knows the head.
    pub fn with_head(head: u64) -> Self {
        Self { head: Some(head), ..Self::default() }
    }

    /// Returns the sequence number of the last batch, if this writer knows it.
    pub(super) fn head(&self) -> Option<u64> {
        self.head
    }

    /// Waits until this writer may send its next transaction.
    pub(super) async fn turn(&mut self) {
        // Even a sleep that ends at once may take a millisecond.
        if self.next > Instant::now() {
            tokio::time::sleep_until(self.next).await;
        }
        self.sent = Instant::now();
    }

    /// Notes that its transaction has become number `head`.
    pub(super) fn won(&mut self, head: u64) {
        self.head = Some(head);
        self.conflicts = 0;
        self.wins = self.wins.saturating_add(1);
        self.measure_turn();
        self.pause(pause_after_win(self.wins, self.turn));
    }

    /// Notes that the head was right, but that entities of the transaction were not newer.
    pub(super) fn knew(&mut self, head: u64) {
        self.head = Some(head);
    }

    /// Notes that the head has moved: to `head`, if that is known.
    pub(super) fn lost(&mut self, head: Option<u64>) {
        self.head = head;
        (self.wins, self.conflicts) = (0, 0);
        self.measure_turn();
        self.pause(full_jitter(self.turn));
    }

    /// Notes that its transaction met another one, which probably moves the head from `head` to the next number. If it
    /// does not, the next refusal says where the head is.
    pub(super) fn met_conflict(&mut self, head: u64) {
        self.back_off(head + 1, CONFLICT_DOUBLINGS);
    }

    /// Notes that its transaction was throttled, so the head may still be at `head`.
    pub(super) fn was_throttled(&mut self, head: u64) {
        self.back_off(head, THROTTLE_DOUBLINGS);
    }

    fn back_off(&mut self, head: u64, doublings: u32) {
        self.head = Some(head);
        self.wins = 0;
        self.measure_turn();
        let ceiling = self.turn * (1_u32 << self.conflicts.min(doublings));
        self.conflicts = self.conflicts.saturating_add(1);
        self.pause(full_jitter(ceiling.min(LONGEST_PAUSE)));
    }

    /// Notes that nobody knows what became of its transaction.
    pub(super) fn lost_sight(&mut self) {
        self.head = None;
    }

    fn measure_turn(&mut self) {
        self.turn = self.sent.elapsed().clamp(SHORTEST_TURN, LONGEST_PAUSE);
    }

    fn pause(&mut self, pause: Duration) {
        self.next = Instant::now() + pause;
    }
}

/// Returns the pause after this many wins since the last lost race, the latest of which took `turn`.
fn pause_after_win(wins: u32, turn: Duration) -> Duration {
    if wins <= UNDISTURBED_WINS {
        return if wins.is_multiple_of(SHARED_WINS) { LONGEST_PAUSE } else { Duration::ZERO };
    }
    let pauses = wins.is_multiple_of(UNDISTURBED_WINS);
    if pauses { (turn * UNDISTURBED_PAUSE_TURNS).min(LONGEST_PAUSE) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(10);

    #[test]
    fn a_writer_gives_way_after_a_run_of_wins_and_for_longer_if_it_has_lost_a_race() {
        let pauses = (1..=100).map(|wins| (wins, pause_after_win(wins, TURN)));
        let pauses: Vec<_> = pauses.filter(|(_, pause)| !pause.is_zero()).collect();
        assert_eq!(pauses, [(16, LONGEST_PAUSE), (32, LONGEST_PAUSE), (64, TURN * 4), (96, TURN * 4)]);
    }

    #[tokio::test]
    async fn no_pause_after_a_conflict_is_longer_than_the_longest() {
        let mut writer = Writer::with_head(7);
        for conflicts in 1..=100 {
            writer.met_conflict(6 + conflicts);
            assert_eq!(writer.head(), Some(7 + conflicts));
            assert!(writer.next.saturating_duration_since(Instant::now()) <= LONGEST_PAUSE);
        }
    }
}
