//! The secrets that deliveries are signed with, as receivers see them, and the keyring that they are sealed with.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use admin::webhooks::{WebhookAdmin, WebhookAdminError};
use common::aws::{Environment, Patience};
use common::event::EventKind;
use common::resources::{Queue, Resources};
use common::rotation::Secrets;
use futures_util::future::join_all;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{AwsCall, SignatureValidity, Stack, hand, uuid};
use webhooks::delivery::Status;
use webhooks::secrets::Keyring;

use super::unreadable::UNKNOWN;
use super::{DAY_SECONDS, Scene};

const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };
const STANDARD_VALID: SignatureValidity = SignatureValidity { service: false, standard: true };
const NEITHER_VALID: SignatureValidity = SignatureValidity { service: false, standard: false };

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_secret_signs_beside_the_old_one_until_it_takes_its_place() {
    let scene = Scene::answering(204).await;
    let (admin, mut event) = (scene.stack.webhooks(), 0);
    let (_, next, _) = admin.rotate_secret(scene.endpoint.id).await.unwrap();
    let mut validities = async || {
        event += 1;
        let id = scene.event(event).await;
        scene.attempt(id).await;
        let [post] = scene.posts(id).try_into().unwrap();
        [post.signed_with(&scene.secret), post.signed_with(&next)]
    };
    assert_eq!(validities().await, [BOTH_VALID, STANDARD_VALID]);
    admin.activate_secret(scene.endpoint.id).await.unwrap();
    assert_eq!(validities().await, [STANDARD_VALID, BOTH_VALID]);
    scene.wait(DAY_SECONDS - 1);
    assert_eq!(validities().await, [STANDARD_VALID, BOTH_VALID]);
    scene.wait(1);
    assert_eq!(validities().await, [NEITHER_VALID, BOTH_VALID]);
}

/// Nothing waits between these rotations, as with a release that did not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_key_an_instance_does_not_know_yet_waits_and_the_keyring_is_read_again() {
    let scene = Scene::answering(204).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let known = scene.sent(1).await;
    assert_eq!(hand(&sender, &known.1).await, [0; 0]);
    let mut waiting = Vec::new();
    for event in [2, 3] {
        let next = keyring(&scene.stack).await.rotate(scene.stack.now()).unwrap();
        put_keyring(&scene.stack, &next.reveal()).await;
        assert_eq!(scene.stack.webhooks().reseal(|_| {}).await.unwrap().resealed, 1);
        waiting.push(scene.sent(event).await);
    }
    proxy.take_calls();
    let batch: Vec<_> = waiting.iter().flat_map(|(_, message)| message.clone()).collect();
    for _ in 0..3 {
        assert_eq!(hand(&sender, &batch).await, [0; 0]);
    }
    // Each message has sent a copy for later.
    let (retry, dead) = (scene.stack.queue(Queue::WebhooksRetry), scene.stack.queue(Queue::WebhooksDead));
    assert_eq!((retry.count().await, retry.visible_count().await, dead.count().await), (6, 0, 0));
    assert_eq!(AwsCall::count(&proxy.take_calls(), "GetSecretValue"), 0, "it was read a moment ago");
    scene.wait(2);
    assert_eq!(hand(&sender, &batch).await, [0; 0]);
    assert_eq!(AwsCall::count(&proxy.take_calls(), "GetSecretValue"), 1);
    scene.assert_delivered(&[waiting[0].0, waiting[1].0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_for_the_drain_keeps_its_wake_up_until_its_key_is_there() {
    let scene = Scene::answering(204).await;
    let ids = [scene.stored(1).await, scene.stored(2).await];
    let whole = keyring(&scene.stack).await;
    put_keyring(&scene.stack, &whole.clone().rotate(scene.stack.now()).unwrap().without_older().reveal()).await;
    // However long that lasts.
    for _ in 0..3 {
        scene.wait(5 * 60);
        scene.sweep_and_drain().await;
    }
    let waits: Vec<_> = ids.iter().map(|id| (Status::Pending, scene.posts(*id).len())).collect();
    assert_eq!(waits, [(Status::Pending, 0); 2]);
    put_keyring(&scene.stack, &whole.reveal()).await;
    scene.wait(60);
    scene.sweep_and_drain().await;
    scene.assert_delivered(&ids).await;
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_known_key_does_not_open_is_a_defect() {
    let scene = Scene::answering(204).await;
    let (admin, seen) = (scene.stack.webhooks(), &scene.endpoint);
    let sealed = admin.keyring.seal(uuid(9).into(), &scene.secret).await.unwrap();
    let broken = Secrets::first(sealed, seen.created_at);
    assert!(admin.store.put_secrets(scene.user, seen.id, &broken, seen.secret_version).await.unwrap());
    let (id, message) = scene.sent(1).await;
    scene.handle(&message).await;
    let [letter] = &scene.stack.queue(Queue::WebhooksDead).take_letters(1).await[..] else { panic!("no letter") };
    assert!(letter.attribute("defect").ends_with("the sealed secret does not open for this endpoint"), "{letter:?}");
    // As the runbook says: another secret mends it, and nothing is lost.
    let (_, next, _) = admin.rotate_secret(seen.id).await.unwrap();
    admin.expire_old_secret(seen.id).await.unwrap();
    scene.attempt(id).await;
    let [post] = scene.posts(id).try_into().unwrap();
    assert_eq!(post.signed_with(&next), BOTH_VALID);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_right_after_each_other_cost_no_delivery() {
    let scene = Scene::answering(204).await;
    let (stack, sender) = (&scene.stack, scene.stack.sender());
    let admin = stack.webhooks();
    let (mut sent, mut event) = (Vec::new(), 0);
    let mut deliver = async || {
        for _ in 0..5 {
            event += 1;
            let (id, message) = scene.sent(event).await;
            assert_eq!(hand(&sender, &message).await, [0; 0]);
            sent.push((id, message));
        }
    };
    deliver().await;
    for _ in 0..2 {
        admin.rotate_keyring(|_| scene.wait(60)).await.unwrap();
        deliver().await;
        admin.reseal(|_| {}).await.unwrap();
        deliver().await;
    }
    assert_eq!(admin.remove_older_keys(|_| scene.wait(60)).await.unwrap(), 2);
    deliver().await;
    scene.wait(2);
    for (id, message) in sent {
        // What was put off comes again.
        assert_eq!(hand(&sender, &message).await, [0; 0]);
        scene.assert_delivered(&[id]).await;
        assert_eq!(scene.posts(id)[0].signed_with(&scene.secret), BOTH_VALID);
    }
    assert_eq!(stack.queue(Queue::WebhooksDead).count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_neither_added_nor_removed_while_functions_may_use_the_keyring_from_before_the_last_rotation() {
    let stack = Stack::new().await;
    let (admin, waits) = (stack.webhooks(), Mutex::new(Vec::new()));
    let report = |left: Duration| {
        waits.lock().unwrap().push(left.as_secs());
        stack.clock.advance(Duration::from_secs(40));
    };
    let waited = || std::mem::take(&mut *waits.lock().unwrap());
    admin.rotate_keyring(report).await.unwrap();
    assert_eq!(waited(), [0; 0]);
    admin.rotate_keyring(report).await.unwrap();
    assert_eq!((waited(), keyring(&stack).await.older()), (vec![60, 20], 2));
    assert_eq!(admin.remove_older_keys(report).await.unwrap(), 2);
    assert_eq!((waited(), keyring(&stack).await.older()), (vec![60, 20], 0));
    admin.rotate_keyring(report).await.unwrap();
    assert_eq!(waited(), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_seals_every_secret_anew_and_running_functions_keep_opening_them() {
    let scene = Scene::answering(204).await;
    let (stack, id) = (&scene.stack, scene.endpoint.id);
    let (cli, running) = (WebhooksCli::new(stack), stack.webhooks());
    for number in 1..=3 {
        cli.add(&uuid(number).to_string()).await;
    }
    running.rotate_secret(id).await.unwrap();
    // A function that still remembers the old keyring opens the endpoint's active secret.
    let assert_opens = async || {
        scene.wait(3);
        let secrets = running.keyring.open(id, &stack.endpoint_of(scene.user).await.secrets).await.unwrap();
        assert_eq!(secrets.active(stack.now()).reveal(), scene.secret.reveal());
    };
    assert_opens().await;

    let rotated = cli.done("rotate-keyring").await;
    let key = text(&rotated["key_id"]);
    assert_eq!(rotated, json!({"key_id": key, "resealed": 4, "unchanged": 0, "failed": [], "removed_keys": 0}));
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([key]));
    assert_eq!(keyring(stack).await.older(), 1);
    assert_opens().await;

    settle(stack).await;
    let (again, ()) = tokio::join!(cli.done("rotate-keyring --remove-old"), async {
        while keyring(stack).await.older() < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        settle(stack).await;
    });
    let newest = text(&again["key_id"]);
    assert_eq!(again, json!({"key_id": newest, "resealed": 4, "unchanged": 0, "failed": [], "removed_keys": 2}));
    let keyring = keyring(stack).await;
    assert_eq!((keyring.older(), keyring.current_id()), (0, newest.as_str()));
    assert_opens().await;

    cli.add(&scene.user.to_string()).await;
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([newest]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_does_not_open_and_an_endpoint_that_cannot_be_read_are_named_and_keep_the_older_keys() {
    let scene = Scene::answering(204).await;
    let (stack, broken) = (&scene.stack, &scene.endpoint);
    let (cli, admin) = (WebhooksCli::new(stack), stack.webhooks());
    for owner in [OWNER, &scene.user.to_string()] {
        cli.add(owner).await;
    }
    let unreadable = scene.second(EventKind::ListingSold).await;
    scene.set_status(unreadable, UNKNOWN).await;
    let secrets = Secrets::first("lost:AAAA".to_owned(), broken.created_at);
    assert!(admin.store.put_secrets(scene.user, broken.id, &secrets, broken.secret_version).await.unwrap());

    let run = cli.run("rotate-keyring --remove-old --json").await;
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!(
        (&report["resealed"], &report["failed"], &report["removed_keys"]),
        (&json!(2), &json!([broken.id, unreadable]), &json!(0))
    );
    let complaint: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(complaint["failed"], json!([broken.id, unreadable]));
    settle(stack).await;
    let refused = admin.remove_older_keys(|_| {}).await;
    assert!(matches!(refused, Err(WebhookAdminError::KeysNeeded(2))), "{refused:?}");
    assert_eq!(keyring(stack).await.older(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_at_the_same_moment_lose_no_reported_key() {
    let stack = Stack::new().await;
    let admins: Vec<_> = (0..16).map(|_| stack.webhooks()).collect();
    let a_minute = |_| stack.clock.advance(Duration::from_mins(1));
    let rotated = join_all(admins.iter().map(|admin| admin.rotate_keyring(a_minute))).await;
    let keyring = keyring(&stack).await;
    let mut promised = 0;
    for key in rotated {
        match key {
            Ok(key) => {
                assert!(keyring.reveal().contains(&key), "{key} is lost");
                promised += 1;
            }
            Err(error) => assert!(matches!(error, WebhookAdminError::Changed), "{error:?}"),
        }
    }
    assert!(promised >= 1 && keyring.older() == promised);
}

/// Returns the ids of the keys under which the stored secrets are sealed.
async fn sealing_keys(admin: &WebhookAdmin) -> BTreeSet<String> {
    let page = admin.store.all_endpoints(None).await.unwrap();
    let sealed = page.endpoints.iter().flat_map(|endpoint| endpoint.secrets.valid(admin.clock.now()));
    sealed.map(|sealed| sealed.split_once(':').unwrap().0.to_owned()).collect()
}

pub(super) async fn keyring(stack: &Stack) -> Keyring {
    let (client, name) = secrets_manager(stack);
    let found = client.get_secret_value().secret_id(name).send().await.unwrap();
    Keyring::parse(found.secret_string().unwrap()).unwrap()
}

pub(super) async fn put_keyring(stack: &Stack, document: &str) {
    let (client, name) = secrets_manager(stack);
    client.put_secret_value().secret_id(name).secret_string(document).send().await.unwrap();
}

/// Makes the last rotation one of long ago. `marketctl` goes by the machine's clock.
async fn settle(stack: &Stack) {
    let mut document: Value = serde_json::from_str(&keyring(stack).await.reveal()).unwrap();
    document.as_object_mut().unwrap().remove("rotated_at");
    put_keyring(stack, &document.to_string()).await;
}

/// Returns a client, and the name of the keyring.
fn secrets_manager(stack: &Stack) -> (aws_sdk_secretsmanager::Client, String) {
    let variables = Variables::new(&stack.aws.endpoint_url);
    let environment = Environment::read(&|name| variables.get(name)).unwrap();
    (webhooks::secrets::client(&environment, Patience::Bulk), Resources::new(Resources::DEFAULT_STACK).keyring())
}
