//! Rows that a newer release wrote, among others that this release can read. Each is an error of itself alone.

use admin::webhooks::NewEndpoint;
use aws_sdk_dynamodb::types::AttributeValue::{N, S};
use common::clock::Clock;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId};
use common::resources::{Queue, Resources, Table, WAKE_AT, WAKE_SHARD};
use common::rows::Unreadable;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::WebhooksCli;
use tests::{Fault, Listener, RuntimeApi, dynamodb, hand, sale, set_row_number, set_text, uuid};
use webhooks::delivery::Status;
use webhooks::delivery_id;
use webhooks::notice::disabled_notice_id;
use webhooks::store::{Due, WAKE_SHARDS};

use super::{BEFORE_LAST, OVERDUE_SECONDS, Scene, feed_message};
use crate::repair::rows;

/// A word that this release does not know.
pub(super) const UNKNOWN: &str = "known_to_a_newer_release";
/// How long an unreadable row is set aside.
const ASIDE_SECONDS: i64 = 60 * 60;
const TABLE: &str = "marketplace-webhooks";

impl Scene {
    pub(super) async fn set_event(&self, id: DeliveryId, event: &str) {
        let partition = format!("delivery#{id}");
        set_text(&self.stack, Table::Webhooks, [&partition, "delivery"], "event", event).await;
    }

    pub(super) async fn set_status(&self, id: EndpointId, status: &str) {
        let partition = format!("account#{}", self.user);
        let path = format!("endpoint_{id}.status");
        set_text(&self.stack, Table::Webhooks, [&partition, "endpoints"], &path, status).await;
    }

    /// Adds a second endpoint to the account.
    pub(super) async fn second(&self, event: EventKind) -> EndpointId {
        let new = NewEndpoint { user_id: self.user, url: self.receiver.url.clone(), events: [event].into() };
        self.stack.webhooks().add(new).await.unwrap().0.id
    }

    /// Plants a row of an unknown kind whose wake-up has long come.
    pub(super) async fn reminder(&self, number: u32, shard: u32) {
        let table = Resources::new(Resources::DEFAULT_STACK).table(Table::Webhooks);
        let put = dynamodb(&self.stack).put_item().table_name(table).item("pk", S(format!("reminder#{number}")));
        let put = put.item("sk", S("reminder".to_owned())).item(WAKE_SHARD, S(format!("wake#{shard}")));
        put.item(WAKE_AT, N(number.to_string())).send().await.unwrap();
    }

    /// Sweeps once. Returns the metrics of the run.
    pub(super) async fn swept(&self) -> Value {
        let listener = Listener::start();
        self.stack.sweep().await;
        let [line] = &listener.take()[..] else { panic!("not one line") };
        json!(line.metrics("sweep"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_cannot_be_read_hold_up_no_others_and_are_not_lost() {
    let scene = Scene::answering(204).await;
    // First attempts whose messages are lost, more than a run reads at once, and parked retries. The others come later.
    let (mut spoilt_ids, mut other_ids) = (Vec::new(), Vec::new());
    for (ids, first, firsts) in [(&mut spoilt_ids, 1, 32), (&mut other_ids, 101, 8)] {
        for event in first..first + firsts {
            ids.push(scene.stored(event).await);
        }
        for event in first + firsts..first + firsts + 4 {
            ids.push(scene.failed(event, 3).await);
        }
        scene.wait(1);
    }
    for id in &spoilt_ids {
        scene.set_event(*id, UNKNOWN).await;
    }
    scene.wait(OVERDUE_SECONDS);
    assert_eq!(scene.swept().await, json!({"Called": 1}));
    scene.stack.drain(scene.user).await;
    let assert_delivered = async |ids: &[DeliveryId]| {
        for id in ids {
            assert_eq!((scene.delivery(*id).await.progress.status, scene.posts(*id).len()), (Status::Delivered, 1));
        }
    };
    assert_delivered(&other_ids).await;

    // Runs of the next hour do not meet these rows. The one after it looks at each again.
    for id in &spoilt_ids {
        scene.set_event(*id, "listing.sold").await;
    }
    // A first attempt may be made a minute early.
    scene.wait(ASIDE_SECONDS - 62);
    scene.sweep_and_drain().await;
    for id in &spoilt_ids {
        assert_eq!(scene.posts(*id).len(), 0);
    }
    scene.wait(62 + 60);
    scene.sweep_and_drain().await;
    assert_delivered(&spoilt_ids).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_of_an_unknown_kind_holds_up_no_drain_and_setting_a_row_aside_changes_only_its_wake_up() {
    let scene = Scene::answering(204).await;
    let [id, spoilt] = [scene.stored(1).await, scene.stored(2).await];
    scene.set_event(spoilt, UNKNOWN).await;
    for shard in 0..WAKE_SHARDS {
        scene.reminder(shard, shard).await;
    }
    let key = [format!("delivery#{spoilt}"), "delivery".to_owned()];
    let mut expected = rows(&scene.stack, TABLE).await.remove(&key).unwrap();
    scene.wait(OVERDUE_SECONDS);
    assert_eq!(scene.swept().await, json!({"Called": 1, "Unreadable": 8}));
    scene.stack.drain(scene.user).await;
    scene.assert_delivered(&[id]).await;
    let until = N(scene.stack.clock.now().plus_millis(ASIDE_SECONDS * 1_000).millis().to_string());
    expected.insert(WAKE_AT.to_owned(), until);
    assert_eq!(rows(&scene.stack, TABLE).await.remove(&key), Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_that_has_moved_meanwhile_is_left_where_it_is() {
    let scene = Scene::answering(204).await;
    scene.reminder(7, 0).await;
    let (store, now) = (scene.stack.webhooks().store, scene.stack.clock.now());
    let (due, _) = store.due(0, now, None).await.unwrap();
    let [Due::Unreadable(found)] = &due[..] else { panic!("not one row") };
    set_row_number(&scene.stack, Table::Webhooks, ["reminder#7", "reminder"], WAKE_AT, 8).await;
    let before = rows(&scene.stack, TABLE).await;
    assert!(!store.set_aside(&found.wake_up, now).await.unwrap());
    assert_eq!(rows(&scene.stack, TABLE).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_cannot_be_read_is_set_aside_and_sent_once_it_can_be_read() {
    let scene = Scene::answering(500).await;
    let id = scene.failed(1, BEFORE_LAST).await;
    let message = scene.message(id).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "SendMessage" { Fault::Refuse } else { Fault::None });
    hand(&sender, &message).await;
    let partition = format!("notice#{}", disabled_notice_id(scene.endpoint.id, scene.endpoint.epoch));
    let set_layout = async |layout| {
        set_row_number(&scene.stack, Table::Webhooks, [&partition, "notice"], "layout", layout).await;
    };
    set_layout(2).await;
    scene.wait(2 * 60);
    assert_eq!(scene.swept().await["Unreadable"], 1);
    set_layout(1).await;
    assert_eq!(scene.swept().await["Notices"], Value::Null);
    scene.wait(ASIDE_SECONDS);
    assert_eq!(scene.swept().await["Notices"], 1);
    assert_eq!(scene.stack.take_notices().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_names_each_row_that_it_sets_aside_once() {
    let scene = Scene::answering(204).await;
    for (number, shard) in [(1, 0), (2, 0), (3, 0), (4, 1)] {
        scene.reminder(number, shard).await;
    }
    let mut sweep = RuntimeApi::run("sweep", &Variables::new(&scene.stack.aws.endpoint_url)).await;
    for _ in 0..2 {
        sweep.invoke(json!({})).await;
    }
    let lines: Vec<Value> = sweep.lines().into_iter().map(|line| line.json).collect();
    let swept = lines.iter().filter(|line| line["message"] == "swept");
    let swept: Vec<Value> = swept.map(|line| json!([line["failed"], line["Unreadable"]])).collect();
    assert_eq!(swept, [json!([0, 4]), json!([0, 0])]);
    let warned = lines.iter().filter(|line| line["message"] == "unreadable row");
    let mut warned: Vec<Value> = warned.map(|line| json!([line["row"], line["what"], line["level"]])).collect();
    warned.sort_by_key(Value::to_string);
    assert_eq!(warned, [1, 2, 3, 4].map(|number| json!([format!("reminder#{number} reminder"), "pk", "WARN"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_read_puts_off_only_the_events_that_it_may_have_selected() {
    let scene = Scene::answering(204).await;
    let (other, unconcerned) = (scene.other(6).await, scene.other(7).await);
    let second = scene.second(EventKind::ListingSold).await;
    scene.set_status(second, UNKNOWN).await;
    let deposits = unconcerned.second(EventKind::WalletDeposit).await;
    unconcerned.set_status(deposits, UNKNOWN).await;

    let ingest = scene.stack.ingest_at(&scene.stack.aws.endpoint_url);
    let batch = [sale(1, scene.user), sale(2, other.user), sale(3, unconcerned.user)].map(|event| feed_message(&event));
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    let [feed, dead] = [scene.stack.queue(Queue::Feed), scene.stack.queue(Queue::FeedDead)];
    assert_eq!(feed.count().await, 1, "the event is not done, because one endpoint did not get it");
    let first = scene.stack.queue(Queue::WebhooksFirst);
    scene.handle(&first.take(3).await).await;
    for (scene, event) in [(&scene, 1), (&other, 2), (&unconcerned, 3)] {
        scene.assert_delivered(&[scene.id(event)]).await;
    }

    // The message comes again: the readable endpoint gets nothing twice, and the other one gets it once it is read.
    assert_eq!(hand(&ingest, &feed.take(1).await).await, [0; 0]);
    scene.handle(&first.take(1).await).await;
    scene.set_status(second, "enabled").await;
    assert_eq!(hand(&ingest, &feed.take(1).await).await, [0; 0]);
    assert_eq!((feed.count().await, dead.count().await), (0, 0));
    // The other one has proved nothing yet, so its first delivery waits for the drain.
    scene.handle(&first.take(1).await).await;
    let retry = scene.stack.queue(Queue::WebhooksRetry);
    scene.handle(&retry.take(1).await).await;
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(delivery_id(uuid(1).into(), second)).await, (Status::Delivered, 1));
    assert_eq!(scene.receiver.so_far().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_read_is_not_taken_for_a_removed_one() {
    let scene = Scene::answering(204).await;
    let other = scene.other(6).await;
    let ((id, message), (other_id, other_message)) = (scene.sent(1).await, other.sent(2).await);
    let batch = [message, other_message].concat();
    scene.set_status(scene.endpoint.id, UNKNOWN).await;
    scene.handle(&batch).await;
    let [letter] = &scene.stack.queue(Queue::WebhooksDead).take_letters(1).await[..] else { panic!("no letter") };
    assert_eq!(Some(&letter.body), batch[0].body.as_ref());
    assert!(letter.attribute("defect").starts_with("unreadable row: "), "{letter:?}");
    assert_eq!(scene.standing(id).await, (Status::Pending, 0));
    assert_eq!(other.standing(other_id).await, (Status::Delivered, 1));
    let error = scene.stack.webhooks().resend(id).await.unwrap_err().to_string();
    assert!(error.starts_with("unreadable row: account#") && error.ends_with(".status"), "{error}");

    scene.set_status(scene.endpoint.id, "enabled").await;
    scene.handle(&batch).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_what_can_be_read_and_names_the_rest_on_standard_error() {
    let scene = Scene::answering(204).await;
    let (cli, endpoint) = (WebhooksCli::new(&scene.stack), scene.endpoint.id);
    let ids = [scene.stored(1).await, scene.stored(2).await, scene.stored(3).await];
    scene.set_event(ids[1], UNKNOWN).await;
    let second = scene.second(EventKind::ListingSold).await;
    scene.set_status(second, UNKNOWN).await;

    let unreadable = |row: String, what: String| json!([{"row": row, "what": what}]);
    let of_account = unreadable(format!("account#{} endpoints", scene.user), format!("endpoint_{second}.status"));
    let of_endpoint = unreadable(format!("delivery#{} delivery", ids[1]), "event".to_owned());
    for (line, mut expected, missing) in [
        (format!("list --user {}", scene.user), vec![endpoint.to_string()], of_account),
        (format!("deliveries {endpoint}"), vec![ids[0].to_string(), ids[2].to_string()], of_endpoint),
    ] {
        let run = cli.run(&format!("{line} --json")).await;
        assert_eq!(run.code, 1, "{run:?}");
        let mut shown: Vec<_> = run.json().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        shown.sort_by_key(ToString::to_string);
        expected.sort();
        assert_eq!(shown, expected, "{line}");
        let failure: Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(failure["unreadable"], missing, "{line}");
    }

    let removal = scene.stack.webhooks().remove(endpoint).await.unwrap();
    let left = Unreadable { row: format!("delivery#{} delivery", ids[1]), what: "event".to_owned() };
    assert_eq!((removal.ended, removal.unreadable), (2, vec![left]));
    assert_eq!(scene.stack.webhooks().remove(second).await.unwrap().ended, 0, "it need not be readable");
}
