//! The table of a day, as Markdown: receivers from prompt to nearly too slow, at loads up to twice what they can take.

use std::sync::Mutex;
use std::thread;

use crate::endpoint::{Plan, Receiver, Traffic};
use crate::figures::{DAY, HOUR, MINUTE, Millis, SECOND, Settings};
use crate::scenarios::{capacity, hanging, hundred_hanging};
use crate::simulate;

const LATENCIES: [Millis; 5] = [150, 900, 1_200, 3_000, 9_000];
const LOADS: [f64; 4] = [0.1, 0.5, 0.9, 2.0];
/// How many events per second each endpoint of the strangers has. It is a fifth of what it could take if it failed
/// only once, and about all that it can take with its retries.
const STRANGERS_PER_SECOND: f64 = 0.2;

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
        0..SECOND => format!("{time} ms"),
        SECOND..MINUTE => format!("{:.1} s", time as f64 / SECOND as f64),
        MINUTE..HOUR => format!("{:.1} min", time as f64 / MINUTE as f64),
        _ => format!("{:.1} h", time as f64 / HOUR as f64),
    }
}
