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
    let canary = canary();
    let port = canary.local_addr().unwrap().port();
    let names = ScriptedResolver::all_at(LOOPBACK);
    let client = public(Arc::clone(&names));
    for host in "
        127.0.0.1 127.1 127.0.0.1. 2130706433 017700000001 0x7f000001 0x7f.1 0177.0.0.1 １２７.０.０.１ ①②⑦.⓪.⓪.①
        127。0。0。1 %31%32%37.0.0.1 127%2e0%2E0%2e1 127.0.0.\u{ad}1 0 0.0.0.0 10.0.0.1 172.16.0.1 192.168.0.1
        169.254.169.254 0xa9fea9fe 100.64.0.1 192.0.2.1 198.18.0.1 224.0.0.1 255.255.255.255
        [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]
        [2002:7f00:1::] [2001:0:7f00:1::] [fc00::1] [fe80::1] [fec0::1] [ff02::1] [2001:db8::1]
    "
    .split_whitespace()
    {
        for url in [format!("http://{host}:{port}/"), format!("https:\\\\{host}:{port}")] {
            assert_eq!(post(&client, &url).await.outcome, Err(PostError::Url(UrlRefusal::Address)), "{url}");
        }
    }
    let grows = format!("http://hooks.example.com/{}", "😀".repeat(180));
    for (url, refusal) in [
        ("http://localhost:{port}/", UrlRefusal::LocalName),
        ("http://metadata.google.internal/", UrlRefusal::LocalName),
        ("http://hooks.example.com@127.0.0.1:{port}/", UrlRefusal::UserInfo),
        ("http://hooks.example.com:22/", UrlRefusal::Port),
        ("file:///etc/passwd", UrlRefusal::Scheme),
        ("http://hooks.example.com/ HTTP/1.1\r\nx: y", UrlRefusal::Character),
        (&grows, UrlRefusal::TooLong),
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

#[tokio::test]
async fn a_name_with_one_internal_address_is_not_connected_to() {
    let canary = canary();
    let url = format!("http://hooks.example.com:{}/", canary.local_addr().unwrap().port());
    for mixed in [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::ffff:127.0.0.1"]] {
        let names = ScriptedResolver::in_turn(vec![Ok(addresses(&mixed))]);
        let client = Transport::new(reach(Arc::new(names))).unwrap();
        assert_eq!(post(&client, &url).await.outcome, Err(PostError::NotPublic), "{mixed:?}");
    }
    assert!(!is_touched(&canary));
}

/// Inside a VPC, names of the public DNS and of private zones resolve to addresses that only the VPC leads to. In each
/// answer the canary stands first, so it would be connected to if the other address passed.
#[tokio::test]
async fn a_name_that_resolves_into_the_senders_own_network_is_not_connected_to() {
    let canary = canary();
    let port = canary.local_addr().unwrap().port();
    for (name, inside) in [
        ("vpce-0a1b2c3d4e5f60718-x9y8z7w6.sqs.us-east-1.vpce.amazonaws.com", "10.0.1.57"),
        ("secretsmanager.us-east-1.amazonaws.com", "10.0.2.57"),
        ("ec2-198-51-100-7.compute-1.amazonaws.com", "172.31.16.7"),
        ("db.cluster-abc.us-east-1.rds.amazonaws.com", "192.168.10.20"),
        ("pods.example.com", "100.64.3.4"),
        ("resolver.example.com", "10.0.0.2"),
        ("resolver.example.com", "169.254.169.253"),
        ("resolver.example.com", "fd00:ec2::253"),
        ("metadata.example.com", "169.254.169.254"),
        ("metadata.example.com", "fd00:ec2::254"),
        ("credentials.example.com", "169.254.170.2"),
        ("lambda.example.com", "169.254.100.1"),
        ("neighbour.example.com", "fe80::1"),
        ("private.example.com", "fd12:3456:789a::1"),
        ("dns64.example.com", "64:ff9b::a00:102"),
        ("dns64.example.com", "64:ff9b::808:808"),
        ("dns64.example.com", "64:ff9b:1:a00:1:200::"),
        ("mapped.example.com", "::ffff:10.0.1.2"),
        ("tunnel.example.com", "2002:a00:102::1"),
        ("tunnel.example.com", "2001:0:808:808:0:0:f5ff:fefd"),
        ("benchmark.example.com", "198.18.0.1"),
        ("everybody.example.com", "255.255.255.255"),
        ("everybody.example.com", "224.0.0.251"),
    ] {
        let names = ScriptedResolver::in_turn(vec![Ok(addresses(&["127.0.0.1", inside]))]);
        let client = Transport::new(reach(Arc::new(names))).unwrap();
        let outcome = post(&client, &format!("http://{name}:{port}/")).await.outcome;
        assert_eq!(outcome, Err(PostError::NotPublic), "{name} at {inside}");
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
async fn the_policy_of_production_does_not_open_loopback() {
    assert_eq!(Reach::public().policy, Policy::public());
    let canary = canary();
    let client = Transport::new(Reach::public()).unwrap();
    let outcome = post(&client, &format!("http://{}/", canary.local_addr().unwrap())).await.outcome;
    assert_eq!(outcome, Err(PostError::Url(UrlRefusal::Address)));
    assert!(!is_touched(&canary));
}

#[tokio::test]
async fn the_addresses_are_tried_in_turn() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let order = addresses(&["127.9.9.9", "::1", "127.0.0.1"]);
    let client = Transport::new(reach(Arc::new(ScriptedResolver::in_turn(vec![Ok(order)])))).unwrap();
    assert!(post(&client, &receiver.url_at("http", "hooks.example.com")).await.is_acknowledged());
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
    let dropped = Receiver::start(|_| Box::pin(async { Ok(()) })).await;
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
