//! The one described answer that needs a failing store.

use tests::{Fault, Stack};

use crate::anywhere::assert_described;

#[tokio::test(flavor = "multi_thread")]
async fn a_503_is_as_described() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let document = running.client.send("GET", "/v1/openapi.json", &[]).await.json();
    let key = stack.full_key().await;
    proxy.set_fault(Fault::Refuse);
    let unavailable = running.client.get(&key, "/v1/public/orders").await;
    assert_eq!(unavailable.status, 503);
    assert_described(&document, "/v1/public/orders", &unavailable);
}
