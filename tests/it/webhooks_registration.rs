//! Which URLs an endpoint may have. The URL's text is checked, and the addresses that its host name has now.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use admin::webhooks::{NewEndpoint, WebhookAdmin};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use guard::{Policy, Resolve};
use tests::{Stack, uuid};
use types::event::EventKind;

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
