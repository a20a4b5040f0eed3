//! What was reported, and which of it an answer must show.

use std::rc::Rc;
use std::time::Duration;

use super::oracle::{Oracle, Question};
use super::records::{Change, Key, Millis};

/// Prices may be computed with a list of marketplaces that is this old.
const MARKETPLACES_LAG: Duration = Duration::from_secs(30);
/// Catalog and listings look for changes if they have not done so for this long.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// An answer from them is not older than this when it leaves.
const MAX_STALENESS: Duration = Duration::from_secs(2);
/// After this time every answer shows a change.
const SHOWN_BY_ALL: Duration = Duration::from_secs(40);
/// With more changes of which it is open whether they show, an answer is not compared.
const MOST_OPEN: usize = 8;

/// When a request began, and when its answer was there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) at: Duration,
    pub(super) answered: Duration,
    /// The wall clock's time at each of these.
    pub(super) wall: [Millis; 2],
    /// Whether calls were refused or slow meanwhile.
    pub(super) is_in_trouble: bool,
}

#[derive(Default)]
pub(super) struct Reported {
    /// What every answer shows.
    old: Rc<Oracle>,
    /// The others, each with the time at which it was acknowledged.
    recent: Vec<(Rc<Change>, Option<Duration>)>,
}

/// What an answer must show, and what it may show besides.
pub(super) struct Expected {
    shown: Rc<Oracle>,
    open: Vec<Rc<Change>>,
}

impl Reported {
    pub(super) fn begin(&mut self, changes: &[Rc<Change>]) {
        self.recent.extend(changes.iter().map(|change| (Rc::clone(change), None)));
    }

    /// Notes that everything so far was acknowledged.
    pub(super) fn acknowledge(&mut self, now: Duration) {
        for (change, acknowledged) in std::mem::take(&mut self.recent) {
            let at = acknowledged.unwrap_or(now);
            if at + SHOWN_BY_ALL < now {
                Rc::make_mut(&mut self.old).apply(&change);
            } else {
                self.recent.push((change, Some(at)));
            }
        }
    }

    /// Returns what the answer to a question must show, or `None` if too much is open.
    pub(super) fn expected(&self, question: &Question, asked: Asked) -> Option<Expected> {
        let (mut shown, mut open) = (Rc::clone(&self.old), Vec::new());
        for (change, acknowledged) in self.recent.iter().filter(|(change, _)| question.concerns(change)) {
            if acknowledged.is_some_and(|at| must_show(question, &change.key, at, asked)) {
                Rc::make_mut(&mut shown).apply(change);
            } else {
                open.push(Rc::clone(change));
            }
        }
        (open.len() <= MOST_OPEN).then_some(Expected { shown, open })
    }
}

fn must_show(question: &Question, key: &Key, acknowledged: Duration, asked: Asked) -> bool {
    match (question, key) {
        (Question::Catalog { .. } | Question::Listings { .. }, _) => {
            let lag = if asked.is_in_trouble { MAX_STALENESS } else { LOOK_INTERVAL };
            acknowledged + lag <= asked.at || acknowledged + MAX_STALENESS <= asked.answered
        }
        (Question::Prices(_) | Question::Item { .. }, Key::Marketplace(_)) => {
            acknowledged + MARKETPLACES_LAG <= asked.at
        }
        _ => acknowledged <= asked.at,
    }
}

impl Expected {
    /// Returns every answer that is right. The first one shows everything.
    pub(super) fn answers(&self, question: &Question, asked: Asked) -> impl Iterator<Item = (u16, String)> {
        let all = (1_u32 << self.open.len()) - 1;
        (0..=all).rev().flat_map(move |shows| {
            let mut oracle = Rc::clone(&self.shown);
            for (_, change) in (0..).zip(&self.open).filter(|(number, _)| shows >> number & 1 == 1) {
                Rc::make_mut(&mut oracle).apply(change);
            }
            let [began, ended] = asked.wall;
            let times = if began == ended { vec![began] } else { vec![ended, began] };
            times.into_iter().map(move |now| oracle.answer(question, now))
        })
    }
}
