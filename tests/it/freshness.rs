//! A committed change is seen on every instance within two seconds, whatever its clocks do.

use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValue;
use tests::{Fault, RunningInstance, Stack, compaction, dynamodb, item, listing, uuid};
use types::records::PublicItem;

const MARKET_TABLE: &str = "marketplace-market";

async fn total(stack: &Stack, running: &RunningInstance) -> u64 {
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    reply.json()["total"].as_u64().unwrap()
}

async fn add_listing(stack: &Stack, number: u32) {
    stack.feed(&[listing(number, "1.00", "2026-11-20T10:00:00Z", 1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_seen_once_a_second_has_passed_on_either_clock() {
    let stack = Stack::new().await;
    let (one, other) = (stack.instance().await, stack.instance().await);
    add_listing(&stack, 1).await;
    assert_eq!([total(&stack, &one).await, total(&stack, &other).await], [0, 0], "less than a second has passed");
    one.wait(1);
    other.wait(1);
    assert_eq!([total(&stack, &one).await, total(&stack, &other).await], [1, 1]);

    add_listing(&stack, 2).await;
    let frozen = one.clock.clone();
    frozen.set_wall("2026-11-20T12:00:02Z".parse().unwrap());
    assert_eq!(total(&stack, &one).await, 2, "although the monotonic clock stood still");

    add_listing(&stack, 3).await;
    frozen.set_wall("2026-11-20T11:59:00Z".parse().unwrap());
    assert_eq!(total(&stack, &one).await, 3, "although the wall clock went back");

    add_listing(&stack, 4).await;
    other.wait(1);
    other.clock.set_wall("2026-11-20T12:00:01Z".parse().unwrap());
    assert_eq!(total(&stack, &other).await, 4, "although the wall clock stood still");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_catch_up_is_503_only_two_seconds_after_the_last_success() {
    let stack = Stack::new().await;
    add_listing(&stack, 1).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    assert_eq!(total(&stack, &running).await, 1);
    proxy.plan(|operation| if operation == "Query" { Fault::Refuse } else { Fault::None });
    running.clock.advance(Duration::from_millis(1_999));
    assert_eq!(total(&stack, &running).await, 1);
    running.clock.advance(Duration::from_millis(1));
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(reply.status, 503);
    proxy.set_fault(Fault::None);
    assert_eq!(total(&stack, &running).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_the_instance_was_frozen_is_read_again() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    // The first Query hangs until the SDK repeats it. Meanwhile the clock moves on, as after a freeze.
    let mut is_first = true;
    proxy.plan(move |operation| {
        let hangs = operation == "Query" && std::mem::take(&mut is_first);
        if hangs { Fault::Hang } else { Fault::None }
    });
    running.wait(1);
    proxy.take_calls();
    let freeze = async {
        proxy.wait_until_stuck().await;
        running.wait(600);
    };
    let (total, ()) = tokio::join!(total(&stack, &running), freeze);
    assert_eq!(total, 0);
    let queries = proxy.take_calls().iter().filter(|call| call.operation == "Query").count();
    assert_eq!(queries, 2, "the one that was sent before the freeze, and one after it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bulk_that_was_read_before_the_instance_was_frozen_is_not_enough() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    // After a hundred changes in a second, the next Query is an eventually consistent one.
    let listings: Vec<_> = (1..=100).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    running.wait(1);
    assert_eq!(total(&stack, &running).await, 100);
    running.wait(1);
    let mut is_first = true;
    proxy.plan(move |operation| {
        let hangs = operation == "Query" && std::mem::take(&mut is_first);
        if hangs { Fault::Hang } else { Fault::None }
    });
    proxy.take_calls();
    let freeze = async {
        proxy.wait_until_stuck().await;
        running.wait(600);
    };
    let (shown, ()) = tokio::join!(total(&stack, &running), freeze);
    assert_eq!(shown, 100);
    let queries = proxy.take_calls().iter().filter(|call| call.operation == "Query").count();
    assert_eq!(queries, 2, "the eventually consistent one, and a strongly consistent one after the freeze");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_log_is_read_by_one_query_in_each_of_two_requests() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let queries = || proxy.take_calls().iter().filter(|call| call.operation == "Query").count();
    for (round, expected) in [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 0])] {
        let price = format!("{round}.00");
        let listings: Vec<_> = (1..=100).map(|number| listing(number, &price, "2026-11-20T10:00:00Z", round)).collect();
        stack.feed(&listings).await;
        running.wait(1);
        for (request, expected) in expected.into_iter().enumerate() {
            queries();
            assert_eq!(total(&stack, &running).await, 100);
            assert_eq!(queries(), expected, "request {request} of round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_the_log_makes_the_replica_load_afresh() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    for number in 1..=3 {
        add_listing(&stack, number).await;
    }
    let store = dynamodb(&stack);
    let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let delete = store
        .delete_item()
        .table_name(MARKET_TABLE)
        .key("pk", key("log#listings#0"))
        .key("sk", key("00000000000000000002"));
    delete.send().await.unwrap();
    running.wait(1);
    assert_eq!(total(&stack, &running).await, 3);
    add_listing(&stack, 4).await;
    running.wait(1);
    assert_eq!(total(&stack, &running).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_closes_while_the_replica_looks_again_costs_no_load() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    for number in 1..=3 {
        add_listing(&stack, number).await;
    }
    let (store, text) = (dynamodb(&stack), |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned()));
    let delete = store.delete_item().table_name(MARKET_TABLE).key("pk", text("log#listings#0"));
    let delete = delete.key("sk", text("00000000000000000002"));
    let entry = delete.return_values(ReturnValue::AllOld).send().await.unwrap().attributes;
    running.wait(1);
    let mut queries = 0;
    proxy.plan(move |operation| {
        queries += usize::from(operation == "Query");
        if operation == "Query" && queries == 4 { Fault::Hang } else { Fault::None }
    });
    proxy.take_calls();
    // The fourth look hangs until the SDK repeats it. By then the entry is there.
    let put_back = async {
        proxy.wait_until_stuck().await;
        store.put_item().table_name(MARKET_TABLE).set_item(entry).send().await.unwrap();
    };
    let (total, ()) = tokio::join!(total(&stack, &running), put_back);
    assert_eq!(total, 3);
    let queries = proxy.take_calls().iter().filter(|call| call.operation == "Query").count();
    assert_eq!(queries, 4, "each of them of the log; a load would make many more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_started_between_two_batches_misses_nothing() {
    let stack = Stack::new().await;
    let items: Vec<_> = (0..250).map(|n| item(&format!("i{n}"), "skin", Some("Same"), 1)).collect();
    stack.feed(&items[..120]).await;
    let running = stack.instance().await;
    stack.feed(&items[120..]).await;
    let fresh = stack.instance().await;
    running.wait(1);
    for running in [&running, &fresh] {
        let reply = running.client.get(&stack.full_key().await, "/v1/public/catalog?q=same&page_size=1").await;
        assert_eq!(reply.json()["total"], 250);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_lose_nothing() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let writers = (0..4).map(|writer| {
        let stack = &stack;
        async move {
            for number in 0..20 {
                add_listing(stack, writer * 100 + number).await;
                // All writers write the same listing: it stays once, in its newest version.
                let version = u64::from(number * 4 + writer + 1);
                stack.feed_outcomes(&[listing(9_999, &format!("{version}.00"), "2026-11-20T10:00:00Z", version)]).await;
            }
        }
    });
    futures_util::future::join_all(writers).await;
    running.wait(1);
    assert_eq!(total(&stack, &running).await, 81);
    let dearest = running.client.get(&stack.full_key().await, "/v1/public/listings?sort=price_desc&page_size=1").await;
    assert_eq!(dearest.ids(), [uuid(9_999).to_string()]);
    assert_eq!(dearest.json()["items"][0]["price_usd"], "80.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_worked_off_page_by_page_whatever_fails_in_between() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (control, control_proxy) = stack.instance_behind_proxy().await;
    // Long names make the log several pages of 1 MB long.
    let items: Vec<_> = (0..1_500).map(|n| item(&format!("i{n}"), "skin", Some(&"x".repeat(1_000)), 1)).collect();
    stack.feed(&items).await;
    let key = stack.full_key().await;
    let queries = |proxy: &tests::Proxy| proxy.take_calls().iter().filter(|call| call.operation == "Query").count();
    let total = async |running: &RunningInstance| running.client.get(&key, "/v1/public/catalog?page_size=1").await;
    control.wait(2);
    queries(&control_proxy);
    assert_eq!(total(&control).await.json()["total"], 1_500);
    // After the first page, one Query asks for the base, and there is none.
    let pages = queries(&control_proxy) - 1;
    assert_eq!(pages, 2);

    running.wait(2);
    let mut first = true;
    proxy.plan(move |operation| {
        let passes = operation != "Query" || std::mem::take(&mut first);
        if passes { Fault::None } else { Fault::Refuse }
    });
    assert_eq!(total(&running).await.status, 503);
    proxy.set_fault(Fault::None);
    queries(&proxy);
    assert_eq!(total(&running).await.json()["total"], 1_500);
    assert_eq!(queries(&proxy), pages - 1, "the first page was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thawed_instance_loads_the_base_if_it_is_nearer_than_the_end_of_the_log() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    // Long names make the log more than five pages of 1 MB long.
    let items: Vec<_> = (0..5_000).map(|n| item(&format!("i{n}"), "skin", Some(&"x".repeat(1_000)), 1)).collect();
    stack.feed(&items).await;
    compaction::<PublicItem>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let key = stack.full_key().await;
    let calls = |operation: &str| proxy.take_calls().iter().filter(|call| call.operation == operation).count();
    running.wait(600);
    calls("Query");
    let reply = running.client.get(&key, "/v1/public/catalog?page_size=1").await;
    assert_eq!(reply.json()["total"], 5_000, "{:?}", reply.json());
    assert_eq!(calls("Query"), 3, "a page, where the base is, and then the load: the same. No log is behind the base");

    // Now the base is as old as the instance, so the log is read to its end.
    let renamed: Vec<_> = (0..1_500).map(|n| item(&format!("i{n}"), "skin", Some(&"y".repeat(1_000)), 2)).collect();
    stack.feed(&renamed).await;
    running.wait(600);
    let reply = running.client.get(&key, "/v1/public/catalog?page_size=1&q=y").await;
    assert_eq!(reply.json()["total"], 1_500, "{:?}", reply.json());
    assert_eq!(calls("Query"), 3, "a page, where the base is, and the other page");
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_and_conflicting_transactions_are_tried_again() {
    let stack = Stack::new().await;
    let proxy = tests::Proxy::start(&stack.aws.endpoint_url).await;
    let variables = local::environment::Variables::new(&proxy.url);
    let through = local::seed::StackAdmin::new(&variables, stack.clock.clone()).unwrap();
    let user = uuid(1);
    let codes = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    for (version, code) in (1..).zip(codes) {
        let mut faults = 4;
        proxy.plan(move |operation| {
            let fails = operation == "TransactWriteItems" && faults > 0;
            faults -= i32::from(fails);
            if fails { Fault::Cancelled(code) } else { Fault::None }
        });
        let messages = [
            listing(1, "1.00", "2026-11-20T10:00:00Z", version),
            tests::order(user.into(), 1, "2026-11-20T10:00:00Z", version),
        ];
        let outcomes = stack.feed_through(through.stores(), &messages).await;
        assert_eq!(outcomes, [feed::ApplyOutcome::Changed, feed::ApplyOutcome::Changed], "{code}");
    }
}
