//! Two instances of every function over one store, and clients that compare each answer with the oracle's.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

use admin::keys::NewKey;
use common::clock::Clock;
use common::scope::Scope;
use flate2::read::GzDecoder;
use http::Request;
use local::aws::limits::Limits;
use local::simulation::SimulatedInstance;
use serde_json::json;
use tests::{Adversaries, HttpReply, Simulation, answer_from};
use tokio::time::sleep;

use super::draw::{ACCOUNTS, Draw};
use super::feed::Feed;
use super::oracle::Question;
use super::records::Millis;
use super::reported::{Asked, Reported};

/// Requests per minute that no history needs.
const LIMIT: u32 = 15_000;

/// A set of functions with replicas and caches of their own.
struct Instance {
    functions: BTreeMap<&'static str, SimulatedInstance>,
    /// The latest log positions that it showed.
    positions: RefCell<BTreeMap<&'static str, u64>>,
}

impl Instance {
    fn start(simulation: &Simulation) -> Rc<Self> {
        let functions = BTreeMap::from([
            ("catalog", simulation.cold("catalog", catalog::api)),
            ("listings", simulation.cold("listings", listings::api)),
            ("item", simulation.cold("item", item::api)),
            ("prices", simulation.cold("prices", prices::api)),
            ("marketplaces", simulation.cold("marketplaces", marketplaces::api)),
            ("orders", simulation.cold("orders", orders::api)),
            ("balance", simulation.cold("balance", balance::api)),
            ("me", simulation.cold("me", me::api)),
        ]);
        Rc::new(Self { functions, positions: RefCell::default() })
    }

    /// Asserts that an answer does not go back behind the position that a function showed before it was asked.
    fn note_position(&self, function: &'static str, before: Option<u64>, reply: &HttpReply) {
        if let Ok(position) = reply.header("x-log-position").parse::<u64>() {
            assert!(before <= Some(position), "{function} goes back from {before:?} to {position}");
            let mut positions = self.positions.borrow_mut();
            let last = positions.entry(function).or_default();
            *last = position.max(*last);
        }
    }
}

/// The tags that a path was seen with. Bodies are kept as their hashes.
#[derive(Default)]
struct Tags {
    by_body: BTreeMap<(u64, bool), String>,
    last: String,
}

pub(super) struct World {
    pub(super) simulation: Simulation,
    pub(super) feed: Feed,
    pub(super) draw: RefCell<Draw>,
    pub(super) reported: RefCell<Reported>,
    /// Until when a request may find the service unavailable.
    pub(super) trouble_until: Cell<Duration>,
    pub(super) has_stops: Cell<bool>,
    /// How often each thing has happened.
    pub(super) counts: RefCell<BTreeMap<String, u64>>,
    /// The messages that must become dead letters.
    pub(super) refused: RefCell<BTreeSet<String>>,
    instances: RefCell<[Rc<Instance>; 2]>,
    keys: [String; 2],
    me: [String; 2],
    tags: RefCell<BTreeMap<String, Tags>>,
}

impl World {
    pub(super) async fn start(seed: u64, scale: u32, limits: Limits) -> Self {
        let simulation = Simulation::new().await;
        let began = Millis(simulation.now().millis());
        let (mut keys, mut me) = ([const { String::new() }; 2], [const { String::new() }; 2]);
        for (number, account) in ACCOUNTS.into_iter().enumerate() {
            let (key, record) = simulation.key_with(new_key(account.into())).await;
            keys[number] = key;
            me[number] = format!(
                r#"{{"api_key_id":"{}","user_id":"{account}","tier":"free","scopes":{},"rate_limit_per_minute":{LIMIT}}}"#,
                record.key_id,
                json!(Scope::ALL.map(Scope::as_str)),
            );
        }
        let feed = Feed::start(&simulation).await;
        simulation.aws.limits().set(limits);
        simulation.aws.faults().seed(seed);
        Self {
            feed,
            draw: RefCell::new(Draw::new(seed, began, scale)),
            reported: RefCell::default(),
            trouble_until: Cell::default(),
            has_stops: Cell::default(),
            counts: RefCell::default(),
            refused: RefCell::default(),
            instances: RefCell::new([Instance::start(&simulation), Instance::start(&simulation)]),
            keys,
            me,
            tags: RefCell::default(),
            simulation,
        }
    }

    pub(super) fn count(&self, what: &str) {
        *self.counts.borrow_mut().entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn wall(&self) -> Millis {
        Millis(self.simulation.clock().now().millis())
    }

    /// Replaces an instance by one that has loaded nothing.
    pub(super) fn restart(&self, number: usize) {
        self.instances.borrow_mut()[number] = Instance::start(&self.simulation);
        self.count("restarts");
    }

    /// Asks either instance, again and again, with a pause before each request.
    pub(super) async fn ask(&self, times: usize, longest_pause: Duration) {
        for _ in 0..times {
            let (pause, question) = {
                let mut draw = self.draw.borrow_mut();
                (longest_pause.mul_f64(draw.random.f64()), draw.question(&self.me))
            };
            sleep(pause).await;
            let number = usize::from(self.draw.borrow_mut().random.bool());
            self.ask_one(number, &question).await;
        }
    }

    /// Asks both instances the same.
    pub(super) async fn ask_both(&self, times: usize) {
        for _ in 0..times {
            let question = self.draw.borrow_mut().question(&self.me);
            for number in 0..2 {
                self.ask_one(number, &question).await;
            }
        }
    }

    async fn ask_one(&self, number: usize, question: &Question) {
        let instance = Rc::clone(&self.instances.borrow()[number]);
        let path = question.path();
        let account = ACCOUNTS.iter().position(|one| question.account() == Some(*one)).unwrap_or(number);
        let mut request = Request::get(&path).header("authorization", format!("Bearer {}", self.keys[account]));
        let (has_tag, is_packed, stop_seed) = {
            let mut draw = self.draw.borrow_mut();
            (draw.chance(30), draw.chance(20), draw.random.u64(..))
        };
        let tag = self.tags.borrow().get(&path).map(|tags| tags.last.clone()).filter(|_| has_tag);
        if let Some(tag) = &tag {
            request = request.header("if-none-match", tag);
        }
        if is_packed {
            request = request.header("accept-encoding", "gzip");
        }
        let request = request.body(()).unwrap();
        let position = instance.positions.borrow().get(question.function()).copied();
        let (at, began) = (self.simulation.elapsed(), self.wall());
        let asking = answer_from(&instance.functions[question.function()], &request);
        let reply = if self.has_stops.get() {
            let mut adversaries = Adversaries::new(stop_seed, "");
            (adversaries.has_stops, adversaries.limits) = (true, Limits::unlimited());
            adversaries.run(asking).await
        } else {
            asking.await
        };
        let is_in_trouble = at <= self.trouble_until.get();
        let asked = Asked { at, answered: self.simulation.elapsed(), wall: [began, self.wall()], is_in_trouble };
        self.compare(number, question, asked, tag.as_deref(), &reply);
        instance.note_position(question.function(), position, &reply);
    }

    fn compare(&self, number: usize, question: &Question, asked: Asked, tag: Option<&str>, reply: &HttpReply) {
        if reply.status == 503 && asked.is_in_trouble {
            return self.count("503");
        }
        let Some(expected) = self.reported.borrow().expected(question, asked) else {
            return self.count("not compared");
        };
        let path = question.path();
        let mut all_tags = self.tags.borrow_mut();
        let tags = all_tags.entry(path.clone()).or_default();
        let body = body(reply);
        let is_right = |(status, expected): (u16, String)| match reply.status {
            304 => [false, true].into_iter().any(|is_packed| {
                status == 200 && tags.by_body.get(&(hash(&expected), is_packed)).map(String::as_str) == tag
            }),
            found => found == status && body == expected,
        };
        if !expected.answers(question, asked).any(is_right) {
            let (status, wanted) = expected.answers(question, asked).next().unwrap();
            panic!(
                "instance {number} answers {path} with {} {body} instead of {status} {wanted}, or one of {} others, after {:?}; {asked:?}",
                reply.status,
                expected.answers(question, asked).count() - 1,
                self.counts.borrow(),
            );
        }
        tags.note(&path, tag, reply, &body);
        self.count(question.function());
        self.count("answers");
        if reply.status == 304 {
            self.count("304");
        }
    }
}

impl Tags {
    /// Asserts that equal bodies have equal tags and others have others, and that a body comes only if its tag was not
    /// named.
    fn note(&mut self, path: &str, named: Option<&str>, reply: &HttpReply, body: &str) {
        let tag = reply.header("etag").to_owned();
        match reply.status {
            200 => {
                let packed = (hash(body), reply.header("content-encoding") == "gzip");
                assert_ne!(named, Some(tag.as_str()), "{path} is sent again");
                let known = self.by_body.iter().find(|(_, known)| **known == tag).map(|(body, _)| *body);
                assert!(known.is_none_or(|known| known == packed), "two bodies of {path} have the tag {tag}");
                let before = self.by_body.insert(packed, tag.clone());
                assert!(before.is_none_or(|before| before == tag), "a body of {path} has another tag than before");
                self.last = tag;
            }
            304 => assert_eq!(named, Some(tag.as_str()), "{path}"),
            _ => {}
        }
    }
}

fn new_key(user_id: common::ids::UserId) -> NewKey {
    NewKey { limit_override: Some(LIMIT), ..tests::new_key(user_id, &Scope::ALL) }
}

fn body(reply: &HttpReply) -> String {
    if reply.header("content-encoding") == "gzip" {
        let mut text = String::new();
        GzDecoder::new(reply.bytes.as_slice()).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(reply.bytes.clone()).unwrap()
}

fn hash(body: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}
