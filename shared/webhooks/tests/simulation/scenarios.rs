//! The figures that the design promises, each in the smallest simulation that can miss it. Then the table of a day, as
//! Markdown: receivers from prompt to nearly too slow, at loads up to twice what they can take.

use std::sync::Mutex;
use std::thread;

use crate::endpoint::{Plan, Receiver, Traffic};
use crate::figures::{DAY, DEADLINE, HOUR, MINUTE, Millis, SECOND, Settings, Tally};
use crate::simulate;
use crate::world::World;
use webhooks::drain::{FULL_AT, IN_FLIGHT, MEASURE_EVERY_SECONDS};

const LATENCIES: [Millis; 5] = [150, 900, 1_200, 3_000, 9_000];
const LOADS: [f64; 4] = [0.1, 0.5, 0.9, 2.0];
/// How many events per second each endpoint of the strangers has. It is a fifth of what it could take if it failed
/// only once, and about all that it can take with its retries.
const STRANGERS_PER_SECOND: f64 = 0.2;

/// The largest rate that a receiver can acknowledge, in attempts per second, with as many in flight as a run of the
/// drain has.
fn capacity(latency: Millis) -> f64 {
    IN_FLIGHT as f64 * SECOND as f64 / latency as f64
}

/// Returns endpoints of one account. None of them ever answers.
fn hanging(account: usize, endpoints: usize, per_second: f64) -> impl Iterator<Item = Plan> {
    (0..endpoints).map(move |_| Plan::new(account, Receiver::Hanging, Traffic::Poisson(per_second)))
}

/// Returns ten accounts with ten endpoints each that never answer.
fn hundred_hanging(first_account: usize, per_second: f64) -> impl Iterator<Item = Plan> {
    (0..10).flat_map(move |account| hanging(first_account + account, 10, per_second))
}

/// Simulates the smallest deployment.
fn small(plans: &[Plan], until: Millis) -> World {
    simulate(Settings::SMALL, plans, until)
}

fn production(plans: &[Plan], until: Millis) -> World {
    simulate(Settings::PRODUCTION, plans, until)
}

/// Simulates these endpoints alone, and beside others. Returns what happened to them.
fn alone_and_beside(
    simulate: fn(&[Plan], Millis) -> World,
    plans: &[Plan],
    others: impl Iterator<Item = Plan>,
    until: Millis,
) -> [Tally; 2] {
    let beside: Vec<Plan> = plans.iter().copied().chain(others).collect();
    [simulate(plans, until), simulate(&beside, until)].map(|world| world.tally(0..plans.len()))
}

#[test]
fn one_slow_answer_in_a_hundred_delays_nothing() {
    let receiver = Receiver::Mostly { usual: 50, one_in_hundred: 1_200 };
    let world = small(&[Plan::new(0, receiver, Traffic::Poisson(8.0)).until(90 * SECOND)], 3 * MINUTE);
    let tally = world.tally([0]);
    assert!(tally.born > 600);
    assert_eq!(tally.delivered, tally.born);
    assert!(tally.arrived.percentile(95) < 3 * SECOND, "{} ms", tally.arrived.percentile(95));
    assert!(world.endpoints[0].is_prompt);
}

#[test]
fn bursts_to_a_slow_receiver_arrive_in_time() {
    let traffic = Traffic::Bursts { size: 5, every: 5 * SECOND };
    let world = small(&[Plan::new(0, Receiver::Steady(1_200), traffic).until(61 * SECOND)], 3 * MINUTE);
    let tally = world.tally([0]);
    assert_eq!((tally.born, tally.delivered), (60, 60));
    assert!(tally.arrived.percentile(95) < 15 * SECOND, "{} ms", tally.arrived.percentile(95));
}

#[test]
fn a_slow_receiver_is_served_beside_a_sibling_that_hangs() {
    let load = Traffic::Poisson(0.5 * capacity(1_200));
    let slow = [Plan::new(0, Receiver::Steady(1_200), load)];
    let [alone, beside] = alone_and_beside(small, &slow, hanging(0, 1, 1.0), 15 * MINUTE);
    assert!(alone.first.percentile(99) < 2 * SECOND, "{} ms", alone.first.percentile(99));
    assert!(beside.first.percentile(99) < 2 * SECOND, "{} ms", beside.first.percentile(99));
}

#[test]
fn a_new_endpoint_beside_a_sibling_that_hangs_gets_its_first_event_within_five_seconds() {
    let new = |number: u64| single_event(0, 10 * MINUTE + number * 7 * SECOND);
    let plans: Vec<Plan> = hanging(0, 1, 1.0).chain((0..20).map(new)).collect();
    let tally = small(&plans, 15 * MINUTE).tally(1..plans.len());
    assert_eq!(tally.first.count(), 20);
    assert!(tally.first.max() < 5 * SECOND, "{} ms", tally.first.max());
}

#[test]
fn new_endpoints_beside_thirty_accounts_that_hang_get_their_first_event_within_five_seconds() {
    let new = |number: u64| single_event(30 + number as usize, 5 * MINUTE + number * 3 * SECOND);
    let plans: Vec<Plan> = (0..30).flat_map(|account| hanging(account, 2, 1.0)).chain((0..60).map(new)).collect();
    let tally = production(&plans, 9 * MINUTE).tally(60..plans.len());
    assert_eq!(tally.first.count(), 60);
    assert!(tally.first.max() < 5 * SECOND, "{} ms", tally.first.max());
}

/// A new endpoint with one event.
fn single_event(account: usize, at: Millis) -> Plan {
    let once = Traffic::Bursts { size: 1, every: SECOND };
    Plan::new(account, Receiver::Steady(100), once).from(at).until(at + SECOND + 1)
}

/// The others fail every second attempt, so one retry in seven is a parked one, which the drain makes.
#[test]
fn a_hundred_endpoints_that_hang_at_most_double_the_waits_of_others() {
    let receiver = Receiver::Failing { after: 50, percent: 50 };
    let others: Vec<Plan> =
        (0..20).map(|account| Plan::new(account, receiver, Traffic::Poisson(0.4)).prompt()).collect();
    let [alone, beside] = alone_and_beside(production, &others, hundred_hanging(20, 1.0), HOUR);
    for (kind, alone, beside) in [
        ("first attempts", alone.first, beside.first),
        ("retries by message", alone.messaged, beside.messaged),
        ("parked retries", alone.parked, beside.parked),
    ] {
        assert!(beside.count() > 500);
        let [alone, beside] = [alone, beside].map(|times| times.percentile(99));
        println!("p99 of {kind}: {beside} ms beside a hundred endpoints that hang, {alone} ms without them");
        assert!(beside <= 2 * alone, "{kind}: {beside} ms instead of {alone} ms");
    }
}

#[test]
fn prompt_receivers_that_begin_to_hang_delay_others_once() {
    let hanging = hanging(0, 10, 1.0).map(Plan::prompt);
    let other = Plan::new(1, Receiver::Steady(50), Traffic::Poisson(5.0)).prompt();
    let plans: Vec<Plan> = hanging.chain([other.until(MINUTE), other.from(MINUTE)]).collect();
    let world = production(&plans, 5 * MINUTE);
    assert!(world.endpoints[10].tally.first.max() <= 2 * DEADLINE);
    assert!(world.endpoints[11].tally.first.max() < SECOND);
}

/// The first two receivers are prompt, so their events take the first and the retry lane. Those of the third one wait in
/// the table, but come through the retry lane as well.
#[test]
fn a_flood_of_events_of_one_account_does_not_delay_the_retries_of_others() {
    let receiver = Receiver::Failing { after: 50, percent: 50 };
    let other = Plan::new(0, receiver, Traffic::Poisson(1.0)).prompt();
    let flood = |receiver, per_second: f64| Plan::new(1, receiver, Traffic::Poisson(per_second));
    for flood in [
        flood(Receiver::Steady(150), 2.0 * capacity(150)).prompt(),
        flood(Receiver::Steady(900), 6.0 * capacity(900)).prompt(),
        flood(Receiver::Hanging, 1_000.0),
    ] {
        let times = production(&[other, flood], 3 * MINUTE).tally([0]).messaged;
        assert!(times.count() > 50);
        assert!(times.percentile(99) < 3 * SECOND, "{} ms beside {flood:?}", times.percentile(99));
    }
}

#[test]
fn up_to_ninety_percent_of_its_capacity_a_receiver_is_served_within_a_minute() {
    for latency in [900, 1_200, 3_000, 9_000] {
        let load = Traffic::Poisson(0.9 * capacity(latency));
        let world = small(&[Plan::new(0, Receiver::Steady(latency), load)], HOUR);
        let p99 = world.tally([0]).first.percentile(99);
        println!("{latency} ms at 90 % of its capacity: p99 {p99} ms");
        assert!(p99 < MINUTE, "{latency} ms: p99 {p99} ms");
        assert!(world.oldest(0) < MINUTE, "{latency} ms: {} ms", world.oldest(0));
    }
}

#[test]
fn a_backlog_ends_at_its_bound_and_the_rest_is_held() {
    let per_second = 100;
    let mut world = small(&[Plan::new(0, Receiver::Hanging, Traffic::Poisson(f64::from(per_second)))], 30 * MINUTE);
    let (waiting, held) = (world.endpoints[0].waiting, world.tally([0]).held);
    // Deliveries come in until the backlog is measured the next time.
    let bound = FULL_AT as usize;
    let most = bound + 2 * (per_second * MEASURE_EVERY_SECONDS) as usize;
    assert!((bound - 10_000..=most).contains(&waiting), "{waiting}");
    assert!(held > 10_000);

    let before = world.accounts[0].usage.dollars();
    let sample = 2 * MINUTE;
    world.run_until(world.now + sample);
    world.assert_nothing_lost();
    let a_day = (world.accounts[0].usage.dollars() - before) * (DAY / sample) as f64;
    println!("An endpoint that hangs at {per_second} events/s costs ${a_day:.2} a day once its backlog is full.");
    assert!(a_day < 25.0, "${a_day:.2} a day");
}

#[test]
#[ignore = "simulates 60 days, which takes minutes even if it is optimised"]
fn a_day_of_every_receiver() {
    let rows: Vec<(Millis, f64)> =
        LATENCIES.into_iter().flat_map(|latency| LOADS.map(|load| (latency, load))).collect();
    let (next, done) = (Mutex::new(rows.iter().enumerate()), Mutex::new(vec![String::new(); rows.len()]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().unwrap().next();
                    let Some((number, (latency, load))) = taken else { return };
                    let row = row(*latency, *load);
                    done.lock().unwrap()[number] = row;
                }
            });
        }
    });
    println!(
        "| receiver | load | events/s | alone | beside a hanging sibling | beside 100 hanging strangers | held | a day |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    done.into_inner().unwrap().iter().for_each(|row| println!("{row}"));
}

fn row(latency: Millis, load: f64) -> String {
    let per_second = load * capacity(latency);
    let plan = Plan::new(0, Receiver::Steady(latency), Traffic::Poisson(per_second));
    let beside = |others: Vec<Plan>| simulate(Settings::PRODUCTION, &[&[plan], &others[..]].concat(), DAY);
    let worlds = [
        beside(Vec::new()),
        beside(hanging(0, 1, 1.0).collect()),
        beside(hundred_hanging(1, STRANGERS_PER_SECOND).collect()),
    ];
    let cells = worlds.each_ref().map(|world| {
        let first = world.tally([0]).first;
        [first.percentile(50), first.percentile(99), world.oldest(0)].map(time).join(" / ")
    });
    let (tally, dollars) = (worlds[0].tally([0]), worlds[0].accounts[0].usage.dollars());
    let held = 100.0 * tally.held as f64 / tally.born as f64;
    let (latency, load) = (time(latency), 100.0 * load);
    format!("| {latency} | {load:.0} % | {per_second:.1} | {} | {held:.0} % | ${dollars:.2} |", cells.join(" | "))
}

#[test]
#[ignore = "simulates six million deliveries"]
fn ten_endpoints_that_hang_cost_what_their_events_cost() {
    let plans: Vec<Plan> = hanging(0, 10, 100.0).collect();
    let mut world = simulate(Settings::PRODUCTION, &plans, HOUR);
    let before = world.accounts[0].usage.dollars();
    world.run_until(2 * HOUR);
    let a_day = (world.accounts[0].usage.dollars() - before) * (DAY / HOUR) as f64;
    println!("Ten endpoints that hang at 100 events/s each cost ${a_day:.2} a day once their backlogs are full.");
    assert!(a_day < 220.0, "${a_day:.2} a day");
}

/// Shows a time with about two digits.
fn time(time: Millis) -> String {
    match time {
        0 => "0".to_owned(),
        1..SECOND => format!("{time} ms"),
        SECOND..MINUTE => format!("{:.1} s", time as f64 / SECOND as f64),
        MINUTE..HOUR => format!("{:.1} min", time as f64 / MINUTE as f64),
        _ => format!("{:.1} h", time as f64 / HOUR as f64),
    }
}
