//! The secrets that deliveries are signed with, as receivers see them, and the keyring that they are sealed with.

use std::collections::BTreeSet;

use admin::webhooks::{WebhookAdmin, WebhookAdminError};
use common::aws::{Environment, Patience};
use common::resources::Resources;
use common::rotation::Secrets;
use futures_util::future::join_all;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{SignatureValidity, Stack, hand, uuid};
use webhooks::secrets::Keyring;

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

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_go_on_while_the_keyring_is_rotated_underneath_them() {
    let scene = Scene::answering(204).await;
    let (stack, sender, mut event) = (&scene.stack, scene.stack.sender(), 0);
    let mut deliver = async || {
        event += 1;
        let (id, message) = scene.sent(event).await;
        assert_eq!(hand(&sender, &message).await, [0; 0]);
        let [post] = scene.posts(id).try_into().unwrap();
        assert_eq!(post.signed_with(&scene.secret), BOTH_VALID);
    };
    deliver().await;
    let old = keyring(stack).await;
    let new = old.clone().rotate().unwrap();
    put_keyring(stack, &new.reveal()).await;
    deliver().await;
    scene.wait(10);
    // The endpoint's secrets are sealed again under the current key.
    let (admin, seen) = (stack.webhooks(), stack.endpoint_of(scene.user).await);
    let sealed = admin.keyring.seal(seen.id, &scene.secret).await.unwrap();
    let secrets = seen.secrets.try_map(|_| Ok::<_, ()>(sealed.clone())).unwrap();
    assert!(admin.store.put_secrets(seen.account_id, seen.id, &secrets, seen.secret_version).await.unwrap());
    deliver().await;
    let mut without_old: Value = serde_json::from_str(&new.reveal()).unwrap();
    without_old["keys"].as_array_mut().unwrap().retain(|key| key["id"] != old.current_id());
    put_keyring(stack, &without_old.to_string()).await;
    deliver().await;
    scene.wait(10 * 60);
    deliver().await;
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

    let again = cli.done("rotate-keyring --remove-old").await;
    let newest = text(&again["key_id"]);
    assert_eq!(again, json!({"key_id": newest, "resealed": 4, "unchanged": 0, "failed": [], "removed_keys": 2}));
    let keyring = keyring(stack).await;
    assert_eq!((keyring.older(), keyring.current_id()), (0, newest.as_str()));
    assert_opens().await;

    cli.add(&scene.user.to_string()).await;
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([newest]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_completes_an_earlier_one_that_was_cut_short() {
    let stack = Stack::new().await;
    let (cli, admin) = (WebhooksCli::new(&stack), stack.webhooks());
    cli.add(OWNER).await;
    // This rotation is cut short before anything is sealed again.
    let left = admin.rotate_keyring().await.unwrap();
    cli.add(OWNER).await;
    assert_eq!(sealing_keys(&admin).await.len(), 2);
    let done = admin.reseal(|_| {}).await.unwrap();
    assert_eq!((done.resealed, done.unchanged, done.failed), (1, 1, vec![]));
    assert_eq!(sealing_keys(&admin).await, BTreeSet::from([left]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_does_not_open_is_named_and_keeps_the_older_keys() {
    let scene = Scene::answering(204).await;
    let (stack, broken) = (&scene.stack, &scene.endpoint);
    let (cli, admin) = (WebhooksCli::new(stack), stack.webhooks());
    cli.add(OWNER).await;
    let secrets = Secrets::first("lost:AAAA".to_owned(), broken.created_at);
    assert!(admin.store.put_secrets(scene.user, broken.id, &secrets, broken.secret_version).await.unwrap());

    let run = cli.run("rotate-keyring --remove-old --json").await;
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!(
        (&report["resealed"], &report["failed"], &report["removed_keys"]),
        (&json!(1), &json!([broken.id]), &json!(0))
    );
    let complaint: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(complaint["failed"], json!([broken.id]));
    let refused = admin.remove_older_keys().await;
    assert!(matches!(refused, Err(WebhookAdminError::KeysNeeded(1))), "{refused:?}");
    assert_eq!(keyring(stack).await.older(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_at_the_same_moment_lose_no_reported_key() {
    let stack = Stack::new().await;
    let admins: Vec<_> = (0..16).map(|_| stack.webhooks()).collect();
    let rotated = join_all(admins.iter().map(WebhookAdmin::rotate_keyring)).await;
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

async fn keyring(stack: &Stack) -> Keyring {
    let (client, name) = secrets_manager(stack);
    let found = client.get_secret_value().secret_id(name).send().await.unwrap();
    Keyring::parse(found.secret_string().unwrap()).unwrap()
}

async fn put_keyring(stack: &Stack, document: &str) {
    let (client, name) = secrets_manager(stack);
    client.put_secret_value().secret_id(name).secret_string(document).send().await.unwrap();
}

/// Returns a client, and the name of the keyring.
fn secrets_manager(stack: &Stack) -> (aws_sdk_secretsmanager::Client, String) {
    let variables = Variables::new(&stack.aws.endpoint_url);
    let environment = Environment::read(&|name| variables.get(name)).unwrap();
    (webhooks::secrets::client(&environment, Patience::Bulk), Resources::new(Resources::DEFAULT_STACK).keyring())
}
