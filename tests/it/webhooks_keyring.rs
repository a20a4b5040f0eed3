//! Rotating the key that endpoint secrets are sealed with.
//!
//! Which URLs an endpoint may have. The URL's text is checked, and the addresses that its host name has now.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use admin::webhooks::{NewEndpoint, WebhookAdmin, WebhookAdminError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, ready};
use guard::{Policy, Resolve};
use platform::aws::{Environment, Patience};
use secrets::Keyring;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, WebhooksCli, text};
use tests::{Stack, uuid};
use types::event::EventKind;
use types::ids::UserId;
use types::rotation::Secrets;
use webhooks::endpoint::WebhookEndpoint;

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_seals_every_secret_anew_and_running_functions_keep_opening_them() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let running = stack.webhooks();
    let (id, secret) = cli.add(OWNER).await;
    for number in 1..=3 {
        cli.add(&uuid(number).to_string()).await;
    }
    cli.done(&format!("rotate-secret {id}")).await;
    cli.done(&format!("test {id}")).await;
    assert_eq!(opened(&stack, &running, &id).await, secret);

    let rotated = cli.done("rotate-keyring").await;
    let key = text(&rotated["key_id"]);
    assert_eq!(rotated, json!({"key_id": key, "resealed": 4, "unchanged": 0, "failed": [], "removed_keys": 0}));
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([key.clone()]));
    assert_eq!(keyring(&cli).await.older(), 1);
    assert_eq!(opened(&stack, &running, &id).await, secret);

    let again = cli.done("rotate-keyring --remove-old").await;
    let newest = text(&again["key_id"]);
    assert_eq!(again, json!({"key_id": newest, "resealed": 4, "unchanged": 0, "failed": [], "removed_keys": 2}));
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([newest.clone()]));
    assert_eq!((keyring(&cli).await.older(), keyring(&cli).await.current_id()), (0, newest.as_str()));
    assert_eq!(opened(&stack, &running, &id).await, secret);

    cli.add(OWNER).await;
    cli.done(&format!("rotate-secret {id}")).await;
    assert_eq!(sealing_keys(&running).await, BTreeSet::from([newest]));
    assert_eq!(cli.done(&format!("list --user {OWNER}")).await.as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_completes_an_earlier_one_that_was_cut_short() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let admin = stack.webhooks();
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
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let admin = stack.webhooks();
    let (broken, _) = cli.add(OWNER).await;
    cli.add(OWNER).await;
    let user: UserId = OWNER.parse().unwrap();
    let endpoint = find(&admin, &broken).await;
    let secrets = Secrets::first("lost:AAAA".to_owned(), endpoint.created_at);
    assert!(admin.store.put_secrets(user, endpoint.id, &secrets, endpoint.secret_version).await.unwrap());

    let run = cli.run("rotate-keyring --remove-old --json").await;
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!(
        (&report["resealed"], &report["failed"], &report["removed_keys"]),
        (&json!(1), &json!([broken]), &json!(0))
    );
    let complaint: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(complaint["failed"], json!([broken]));
    assert_eq!(keyring(&cli).await.older(), 1);
    let refused = admin.remove_older_keys().await;
    assert!(matches!(refused, Err(WebhookAdminError::KeysNeeded(1))), "{refused:?}");
    assert_eq!(keyring(&cli).await.older(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_at_the_same_moment_lose_no_reported_key() {
    let stack = Stack::new().await;
    let cli = WebhooksCli::new(&stack);
    let admins: Vec<_> = (0..16).map(|_| stack.webhooks()).collect();
    let rotated = join_all(admins.iter().map(WebhookAdmin::rotate_keyring)).await;
    let document = keyring(&cli).await.reveal();
    let mut promised = 0;
    for key in rotated {
        match key {
            Ok(key) => {
                assert!(document.contains(&key), "{key} is lost");
                promised += 1;
            }
            Err(error) => assert!(matches!(error, WebhookAdminError::Changed), "{error:?}"),
        }
    }
    assert_eq!(keyring(&cli).await.older(), promised);
    assert!(promised >= 1);
}

/// Returns an endpoint's active secret, opened by a function that still remembers the old keyring.
async fn opened(stack: &Stack, running: &WebhookAdmin, id: &str) -> String {
    stack.clock.advance(Duration::from_secs(3));
    let WebhookEndpoint { id, secrets, .. } = find(running, id).await;
    let secrets = running.keyring.open(id, &secrets).await.unwrap();
    secrets.active(running.clock.now()).reveal()
}

async fn find(admin: &WebhookAdmin, id: &str) -> WebhookEndpoint {
    let endpoints = admin.list(OWNER.parse().unwrap()).await.unwrap();
    endpoints.readable.into_iter().find(|endpoint| endpoint.id.to_string() == id).unwrap()
}

/// Returns the ids of the keys under which the stored secrets are sealed.
async fn sealing_keys(admin: &WebhookAdmin) -> BTreeSet<String> {
    let page = admin.store.all_endpoints(None).await.unwrap();
    let sealed = page.endpoints.iter().flat_map(|endpoint| endpoint.secrets.valid(admin.clock.now()));
    sealed.map(|sealed| sealed.split_once(':').unwrap().0.to_owned()).collect()
}

async fn keyring(cli: &WebhooksCli) -> Keyring {
    let environment = Environment::read(&|name| cli.variables.get(name)).unwrap();
    let secrets = secrets::client(&environment, Patience::Bulk);
    let found = secrets.get_secret_value().secret_id("marketplace-keyring").send().await.unwrap();
    Keyring::parse(found.secret_string().unwrap()).unwrap()
}

/// Resolves every name to these addresses, or fails.
struct Fixed(Option<Vec<IpAddr>>);

impl Resolve for Fixed {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        ready(self.0.clone().ok_or_else(|| io::Error::other("no such name"))).boxed()
    }
}

fn admin(stack: &Stack, addresses: Option<&[&str]>) -> WebhookAdmin {
    let addresses = addresses.map(|all| all.iter().map(|address| address.parse().unwrap()).collect());
    WebhookAdmin { policy: Policy::public(), resolver: Arc::new(Fixed(addresses)), ..stack.webhooks() }
}

async fn added(admin: &WebhookAdmin, url: &str) -> Result<String, String> {
    let new = NewEndpoint { user_id: uuid(5).into(), url: url.to_owned(), events: [EventKind::ListingSold].into() };
    let added = admin.add(new).await;
    added.map(|(endpoint, _)| endpoint.url).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_refused_for_any_address_that_is_not_public_and_accepted_without_one() {
    let stack = Stack::new().await;
    let url = "https://hooks.example.com/in";
    for addresses in [
        &["10.0.0.1"][..],
        &["93.184.215.14", "169.254.169.254"],
        &["127.0.0.1", "93.184.215.14"],
        &["::ffff:10.0.0.1"],
        &["64:ff9b::a00:1"],
        &["2002:a00:1::"],
        &["fd00::1"],
        &["100.64.0.1"],
    ] {
        let refused = added(&admin(&stack, Some(addresses)), url).await.unwrap_err();
        assert_eq!(refused, "url: the host name has an address that is not public", "{addresses:?}");
    }
    for addresses in [None, Some(&[][..]), Some(&["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])] {
        assert_eq!(added(&admin(&stack, addresses), url).await.as_deref(), Ok(url), "{addresses:?}");
    }
    assert_eq!(stack.webhooks().list(uuid(5).into()).await.unwrap().readable.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_not_public_is_refused_in_whatever_spelling() {
    let stack = Stack::new().await;
    let admin = admin(&stack, Some(&["93.184.215.14"]));
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://１２７.0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[fd00::1]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.64.0.1/",
        "http://198.18.0.1/",
        "http://240.0.0.1/",
        "http://localhost/",
        "http://printer/",
        "http://db.internal/",
        "http://nas.local./",
        "ftp://example.com/",
        "http://user@example.com/",
        "http://@example.com/",
        "http://example.com:25/",
        "http://example.com/\tx",
        " http://example.com/",
        "example.com",
    ] {
        let refused = added(&admin, url).await.expect_err(url);
        assert!(refused.starts_with("url: must "), "{url}: {refused}");
    }
    assert!(admin.list(uuid(5).into()).await.unwrap().readable.is_empty());
}
