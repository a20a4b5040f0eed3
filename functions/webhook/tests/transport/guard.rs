//! Addresses that the client must never connect to.
//!
//! The client also ignores the proxies in the environment. A proxy would see the content of deliveries, and would connect
//! to addresses that the guard has not checked.

use std::net::IpAddr;
use std::sync::Arc;
use std::{env, io};

use tokio::process::Command;

use crate::receiver::{LOOPBACK, Receiver, ScriptedResolver, canary, client, is_touched, post, reach};
use webhook::transport::{PostError, Reach, Transport};
use webhooks::guard::{Policy, UrlRefusal};

/// Tells the child process, which is this test again with proxies in its environment, where the receiver is.
const URL: &str = "WEBHOOK_TEST_URL";

/// Returns the client as deployed, except that names are resolved by this resolver.
fn public(resolver: Arc<ScriptedResolver>) -> Transport {
    Transport::new(Reach { resolver, ..Reach::public() }).unwrap()
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn no_spelling_of_an_internal_address_is_connected_to() {
    assert_eq!(Reach::public().policy, Policy::public());
    let canary = canary();
    let port = canary.local_addr().unwrap().port();
    let names = ScriptedResolver::all_at(LOOPBACK);
    let client = public(Arc::clone(&names));
    for host in "
        127.0.0.1 127.0.0.1. 2130706433 0x7f.1 １２７.０.０.１ %31%32%37.0.0.1 127.0.0.\u{ad}1 0.0.0.0 10.0.0.1
        169.254.169.254 [::] [::1] [::ffff:127.0.0.1] [64:ff9b::127.0.0.1] [2002:7f00:1::] [fc00::1]
    "
    .split_whitespace()
    {
        for url in [format!("http://{host}:{port}/"), format!("https:\\\\{host}:{port}")] {
            assert_eq!(post(&client, &url).await.outcome, Err(PostError::Url(UrlRefusal::Address)), "{url}");
        }
    }
    for (url, refusal) in [
        ("http://localhost:{port}/", UrlRefusal::LocalName),
        ("http://hooks.example.com@127.0.0.1:{port}/", UrlRefusal::UserInfo),
        ("http://hooks.example.com:22/", UrlRefusal::Port),
        ("file:///etc/passwd", UrlRefusal::Scheme),
        ("http://hooks.example.com/ HTTP/1.1\r\nx: y", UrlRefusal::Character),
    ] {
        let url = url.replace("{port}", &port.to_string());
        assert_eq!(post(&client, &url).await.outcome, Err(PostError::Url(refusal)), "{url}");
    }
    assert_eq!(names.asked(), [""; 0]);
    assert!(!is_touched(&canary));
}

#[tokio::test]
async fn a_name_that_resolves_to_an_internal_address_is_not_connected_to() {
    let canary = canary();
    let port = canary.local_addr().unwrap().port();
    for inside in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "fd00::1"] {
        let client = public(ScriptedResolver::all_at(inside.parse().unwrap()));
        for scheme in ["http", "https"] {
            let outcome = post(&client, &format!("{scheme}://hooks.example.com:{port}/")).await.outcome;
            assert_eq!(outcome, Err(PostError::NotPublic), "{inside}");
        }
    }
    assert!(!is_touched(&canary));
}

/// A name is resolved once per connection, and every answer is checked.
#[tokio::test]
async fn a_name_is_refused_while_it_resolves_to_an_internal_address() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let names = Arc::new(ScriptedResolver::in_turn(vec![
        Ok(addresses(&["127.0.0.1"])),
        Ok(addresses(&["10.0.0.1", "127.0.0.1"])),
        Ok(addresses(&["169.254.169.254"])),
        Ok(addresses(&["127.0.0.1"])),
    ]));
    let client = Transport::new(reach(Arc::clone(&names) as _)).unwrap();
    let url = receiver.url_at("http", "hooks.example.com");
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(post(&client, &url).await.outcome);
    }
    assert_eq!(outcomes, [Ok(200), Err(PostError::NotPublic), Err(PostError::NotPublic), Ok(200)]);
    assert_eq!(receiver.accepted(), 2);
    assert_eq!(names.asked().len(), 4);
}

#[tokio::test]
async fn a_name_without_an_address_does_not_resolve() {
    let client =
        public(Arc::new(ScriptedResolver::in_turn(vec![Ok(vec![]), Err(io::Error::other("SERVFAIL from 10.0.0.2"))])));
    for _ in 0..2 {
        let error = post(&client, "https://hooks.example.com/").await.outcome.unwrap_err();
        assert_eq!(error, PostError::Unresolved);
        assert_eq!(format!("{error} {error:?}"), "the host name does not resolve to public addresses Unresolved");
    }
}

#[tokio::test]
async fn at_most_eight_addresses_are_tried_and_all_are_checked() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    // The receiver listens only on 127.0.0.1.
    let silent = |count: u8| (1..=count).map(|last| IpAddr::from([127, 9, 9, last])).collect::<Vec<_>>();
    let inside = IpAddr::from([10, 0, 0, 1]);
    let names = ScriptedResolver::in_turn(vec![
        Ok([silent(8), vec![LOOPBACK]].concat()),
        Ok([silent(8), vec![LOOPBACK, inside]].concat()),
        Ok([silent(7), vec![LOOPBACK]].concat()),
    ]);
    let client = Transport::new(reach(Arc::new(names))).unwrap();
    let url = receiver.url_at("http", "hooks.example.com");
    assert_eq!(post(&client, &url).await.outcome, Err(PostError::Unreachable));
    assert_eq!(post(&client, &url).await.outcome, Err(PostError::NotPublic));
    assert_eq!(receiver.accepted(), 0);
    assert_eq!(post(&client, &url).await.outcome, Ok(200));
}

/// An error names neither a resolved address nor the system's message about it: either would help to map the internal
/// network.
#[tokio::test]
async fn an_error_names_no_address() {
    let port = canary().local_addr().unwrap().port();
    let refused = Transport::new(reach(ScriptedResolver::all_at("127.11.22.33".parse().unwrap()))).unwrap();
    let private = Transport::new(reach(ScriptedResolver::all_at("10.11.22.33".parse().unwrap()))).unwrap();
    let dropped = Receiver::start(|_| async { Ok(()) }).await;
    for (client, url) in [
        (&refused, format!("http://hooks.example.com:{port}/")),
        (&private, format!("https://hooks.example.com:{port}/")),
        (&client(), dropped.url()),
        (&client(), dropped.url_at("https", "127.0.0.1")),
        (&client(), "http://10.11.22.33/".to_owned()),
    ] {
        let posted = post(client, &url).await;
        let error = posted.outcome.as_ref().unwrap_err();
        // The error has no source, so printing its chain shows nothing more.
        assert!(std::error::Error::source(error).is_none());
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains(|c: char| c.is_ascii_digit()), "{text}");
        }
    }
    let text = PostError::Url(UrlRefusal::Address).to_string();
    assert_eq!(text, "the URL is not allowed: it must use a public IP address");
}

#[tokio::test]
async fn the_environments_proxies_are_not_used() {
    if let Ok(url) = env::var(URL) {
        assert!(post(&client(), &url).await.is_acknowledged());
        return;
    }
    let proxy = canary();
    let proxy_url = format!("http://{}", proxy.local_addr().unwrap());
    let receiver = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "guard::the_environments_proxies_are_not_used"]).env(URL, receiver.url());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, &proxy_url).env(name.to_lowercase(), &proxy_url);
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(receiver.accepted(), 1);
    assert!(!is_touched(&proxy));
}
