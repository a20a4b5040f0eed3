//! The secrets that deliveries are signed with, as receivers see them.

use local::environment::Variables;
use platform::aws::{Environment, Patience};
use platform::resources::Resources;
use secrets::Keyring;
use serde_json::Value;
use tests::{Receiver, SignatureValidity, Stack, Verifier, hand, sale, to_loopback, uuid};
use webhooks::delivery_id;

use super::Scene;

const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };
const STANDARD_VALID: SignatureValidity = SignatureValidity { service: false, standard: true };
const NEITHER_VALID: SignatureValidity = SignatureValidity { service: false, standard: false };

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_accepted_by_the_receivers_guides_programs() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(204).await, uuid(5).into());
    let (_, secret) = stack.endpoint(user, &receiver.url).await;
    let _workers = stack.workers_in_real_time(to_loopback(1)).await;
    stack.feed_queue().send(&[sale(1, user).to_string()]).await;
    let post = &receiver.received(1).await[0];
    for verifier in Verifier::ALL {
        let validity = verifier.verify(&secret.reveal(), &post.headers, &post.body).await;
        assert_eq!(validity, BOTH_VALID, "{verifier:?} of {post:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_secret_signs_beside_the_old_one_until_it_takes_its_place() {
    let scene = Scene::answering(204).await;
    let (admin, sender) = (scene.stack.webhooks(), scene.stack.sender());
    let validities = async |event, next: &_| {
        let id = scene.event(event).await;
        hand(&sender, &[scene.stack.next_message(id).await]).await;
        let [post] = scene.posts(id).try_into().unwrap();
        [post.signed_with(&scene.secret), post.signed_with(next)]
    };
    let (_, next) = admin.rotate_secret(scene.endpoint.id).await.unwrap();
    assert_eq!(validities(1, &next).await, [BOTH_VALID, STANDARD_VALID]);
    admin.activate_secret(scene.endpoint.id).await.unwrap();
    assert_eq!(validities(2, &next).await, [STANDARD_VALID, BOTH_VALID]);
    scene.wait(24 * 60 * 60 - 1);
    assert_eq!(validities(3, &next).await, [STANDARD_VALID, BOTH_VALID]);
    scene.wait(1);
    assert_eq!(validities(4, &next).await, [NEITHER_VALID, BOTH_VALID]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_secret_takes_the_old_ones_place_by_itself_after_a_day() {
    let scene = Scene::answering(204).await;
    let (_, next) = scene.stack.webhooks().rotate_secret(scene.endpoint.id).await.unwrap();
    for (event, wait, old_and_next) in [
        (1, 24 * 60 * 60 - 1, [BOTH_VALID, STANDARD_VALID]),
        (2, 1, [STANDARD_VALID, BOTH_VALID]),
        (3, 24 * 60 * 60, [NEITHER_VALID, BOTH_VALID]),
    ] {
        scene.wait(wait);
        let id = scene.event(event).await;
        scene.attempt(id).await;
        let post = &scene.posts(id)[0];
        assert_eq!([post.signed_with(&scene.secret), post.signed_with(&next)], old_and_next);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_go_on_while_the_keyring_is_rotated_underneath_them() {
    let scene = Scene::answering(204).await;
    let (stack, sender) = (&scene.stack, scene.stack.sender());
    let mut events = 1..;
    let mut deliver = async || {
        let event = events.next().unwrap();
        let id = scene.event(event).await;
        assert_eq!(id, delivery_id(uuid(event).into(), scene.endpoint.id));
        hand(&sender, &[stack.next_message(id).await]).await;
        let [post] = scene.posts(id).try_into().unwrap();
        assert_eq!(post.signed_with(&scene.secret), BOTH_VALID);
    };
    deliver().await;
    let old = keyring(stack).await;
    let new = old.clone().rotate().unwrap();
    put_keyring(stack, &new.reveal()).await;
    deliver().await;
    scene.wait(10);
    reseal(&scene).await;
    deliver().await;
    put_keyring(stack, &without(&new, old.current_id())).await;
    deliver().await;
    scene.wait(10 * 60);
    deliver().await;
}

/// Seals the endpoint's secrets again under the current key.
async fn reseal(scene: &Scene) {
    let admin = scene.stack.webhooks();
    let seen = scene.stack.endpoint_of(scene.user).await;
    let sealed = admin.keyring.seal(seen.id, &scene.secret).await.unwrap();
    let secrets = seen.secrets.try_map(|_| Ok::<_, ()>(sealed.clone())).unwrap();
    assert!(admin.store.put_secrets(seen.account_id, seen.id, &secrets, seen.secret_version).await.unwrap());
}

fn without(keyring: &Keyring, id: &str) -> String {
    let mut document: Value = serde_json::from_str(&keyring.reveal()).unwrap();
    document["keys"].as_array_mut().unwrap().retain(|key| key["id"] != id);
    document.to_string()
}

async fn keyring(stack: &Stack) -> Keyring {
    let found = secrets(stack).get_secret_value().secret_id(name()).send().await.unwrap();
    Keyring::parse(found.secret_string().unwrap()).unwrap()
}

async fn put_keyring(stack: &Stack, document: &str) {
    secrets(stack).put_secret_value().secret_id(name()).secret_string(document).send().await.unwrap();
}

fn secrets(stack: &Stack) -> aws_sdk_secretsmanager::Client {
    let variables = Variables::new(&stack.aws.endpoint_url);
    secrets::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk)
}

fn name() -> String {
    Resources::new(Resources::DEFAULT_STACK).keyring()
}
