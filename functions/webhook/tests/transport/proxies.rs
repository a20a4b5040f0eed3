//! The client ignores the proxies in the environment. A proxy would see the content of deliveries, and would connect
//! to addresses that the guard has not checked.

use std::env;

use tokio::process::Command;

use crate::receiver::{Receiver, canary, client, is_touched, post};

/// Tells the child process, which is this test again with proxies in its environment, where the receiver is.
const URL: &str = "WEBHOOK_TEST_URL";

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
    again.args(["--exact", "proxies::the_environments_proxies_are_not_used"]).env(URL, receiver.url());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, &proxy_url).env(name.to_lowercase(), &proxy_url);
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(receiver.accepted(), 1);
    assert!(!is_touched(&proxy));
}
