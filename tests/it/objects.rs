//! The bucket: what is put is read again, also after a restart, and a store that fails is told from an object that is
//! not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use local::environment::Variables;
use objects::Objects;
use platform::aws::{Environment, Patience};
use platform::preflight::Problem;
use platform::resources::BASE_BUCKET_VARIABLE;
use platform::store::StoreError;
use tests::{Fault, Proxy, Stack, local};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const MEGABYTE: usize = 1 << 20;

fn client(endpoint: &str) -> objects::Client {
    let variables = Variables::new(endpoint);
    objects::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Request)
}

fn bucket_name() -> String {
    Variables::new("").get(BASE_BUCKET_VARIABLE).unwrap()
}

fn bucket(endpoint: &str) -> Objects {
    Objects::new(client(endpoint), bucket_name(), Patience::Request)
}

async fn text(objects: &Objects, key: &str) -> Option<String> {
    let found = objects.get(key).await.unwrap();
    found.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

async fn put(objects: &Objects, key: &str, text: &str) {
    objects.put(key, Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
}

fn assert_unavailable<T: std::fmt::Debug>(result: &Result<T, StoreError>, reason: &str) {
    let is_so = matches!(result, Err(StoreError::Unavailable(text)) if text.contains(reason));
    assert!(is_so, "{reason}: {result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_is_read_and_the_last_put_counts() {
    let stack = Stack::new().await;
    let objects = bucket(&stack.aws.endpoint_url);
    assert_eq!(text(&objects, "listings/1").await, None);
    put(&objects, "listings/1", "first").await;
    put(&objects, "listings/2", "").await;
    put(&objects, "listings/1", "second").await;
    assert_eq!(text(&objects, "listings/1").await.as_deref(), Some("second"));
    assert_eq!(text(&objects, "listings/2").await.as_deref(), Some(""));
    assert_eq!(text(&objects, "listings").await, None);

    let large: Bytes = (0..4 * MEGABYTE).map(|index| (index % 251) as u8).collect();
    objects.put("large", large.clone()).await.unwrap();
    assert!(objects.get("large").await.unwrap() == Some(large), "four megabytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_have_any_characters() {
    let stack = Stack::new().await;
    let objects = bucket(&stack.aws.endpoint_url);
    let keys = ["a/b/c", "a b+c", "100%", "%2F", "x?y=1&z#", "käse/日本", "dot.", "(~!*')", "a:b@c;d,e=f$"];
    for key in keys {
        put(&objects, key, key).await;
    }
    for key in keys {
        assert_eq!(text(&objects, key).await.as_deref(), Some(key));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_in_a_folder_outlive_the_process_and_those_in_memory_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let alone = ["--aws-listen", "127.0.0.1:0", "--aws-only", "--empty"];
    let kept = [&alone[..], &["--data", folder.path().to_str().unwrap()]].concat();
    for (arguments, left) in [(&kept[..], Some("second")), (&alone[..], None)] {
        let (mut first, ready) = local(arguments).await;
        let endpoint = ready["aws_endpoint_url"].as_str().unwrap();
        let objects = bucket(endpoint);
        put(&objects, "listings/a b/1", "first").await;
        put(&objects, "listings/a b/1", "second").await;
        put(&objects, "removed", "x").await;
        client(endpoint).delete_object().bucket(bucket_name()).key("removed").send().await.unwrap();
        first.kill().await.unwrap();

        let (_second, ready) = local(arguments).await;
        let objects = bucket(ready["aws_endpoint_url"].as_str().unwrap());
        assert_eq!(text(&objects, "listings/a b/1").await.as_deref(), left);
        assert_eq!(text(&objects, "removed").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_missing_is_not_an_object_that_is_missing() {
    let stack = Stack::new().await;
    let client = client(&stack.aws.endpoint_url);
    let objects = Objects::new(client.clone(), "no-bucket".to_owned(), Patience::Request);
    assert_unavailable(&objects.get("key").await, "NoSuchBucket");
    assert_unavailable(&objects.put("key", Bytes::new()).await, "NoSuchBucket");
    assert_eq!(objects::probe(&client, "no-bucket").await, Err(Problem::Missing));
    assert_eq!(objects::probe(&client, &bucket_name()).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_pushes_back_is_asked_again_three_times_at_most() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let objects = bucket(&proxy.url);
    put(&objects, "key", "value").await;
    for fault in [Fault::Error("SlowDown"), Fault::Refuse] {
        let refused = Arc::new(AtomicUsize::new(0));
        let (counter, planned) = (Arc::clone(&refused), fault.clone());
        proxy.plan(move |_| if counter.fetch_add(1, Ordering::SeqCst) < 2 { planned.clone() } else { Fault::None });
        assert_eq!(text(&objects, "key").await.as_deref(), Some("value"), "{fault:?}");
        assert_eq!(refused.load(Ordering::SeqCst), 3, "{fault:?}");
    }
    proxy.take_calls();
    proxy.set_fault(Fault::Error("SlowDown"));
    assert_unavailable(&objects.get("key").await, "SlowDown");
    assert_unavailable(&objects.put("key", Bytes::new()).await, "SlowDown");
    let calls = proxy.take_operations();
    assert_eq!(calls, ["GetObject", "GetObject", "GetObject", "PutObject", "PutObject", "PutObject"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named_and_not_asked_again() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.set_fault(Fault::Error("AccessDenied"));
    let problem = objects::probe(&client(&proxy.url), &bucket_name()).await;
    assert_eq!(problem, Err(Problem::Denied("AccessDenied: injected".to_owned())));
    assert_unavailable(&bucket(&proxy.url).get("key").await, "AccessDenied");
    assert_eq!(proxy.take_calls().len(), 2);
    proxy.set_fault(Fault::Error("SlowDown"));
    let problem = objects::probe(&client(&proxy.url), &bucket_name()).await;
    assert_eq!(problem, Err(Problem::Unreachable("SlowDown: injected".to_owned())));
}

/// A server that sends the head of each response and the first of its ten bytes, and then nothing.
async fn stalling() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx").await.unwrap();
            open.push(stream);
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_never_ends_is_given_up() {
    assert_unavailable(&bucket(&stalling().await).get("key").await, "no answer within");
}
