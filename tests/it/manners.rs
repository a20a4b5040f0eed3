//! HTTP behaviour that needs a look at the store's calls, or methods that not every gateway passes on.

use serde_json::json;
use tests::Stack;

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_405_before_the_key_is_asked_for() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    proxy.take_calls();
    for path in PATHS.map(|(path, _)| path).into_iter().chain(["/v1/openapi.json"]) {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let reply = running.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method} {path}");
            let params = json!({"method": method});
            assert_eq!(reply.json(), json!({"error": {"code": "routes.method_not_allowed", "params": params}}));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
        }
    }
    assert_eq!(proxy.take_calls().len(), 0);
}
