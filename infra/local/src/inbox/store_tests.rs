use bytes::Bytes;
use http::Request;
use types::timestamp::Timestamp;

use super::*;

fn delivery(id: Option<&str>, path: &str) -> ReceivedDelivery {
    let request = id.into_iter().fold(Request::post(path), |request, id| request.header("webhook-id", id));
    let (head, ()) = request.body(()).unwrap().into_parts();
    ReceivedDelivery::from_request(&head, Bytes::new(), &[], Timestamp::from_millis(0))
}

fn paths(store: &Store) -> Vec<String> {
    store.newest_first().iter().map(|delivery| delivery.path.clone()).collect()
}

/// Reads from a cursor to the end. Returns the paths, with `-` where the inbox was emptied.
fn read(store: &Store, mut cursor: Option<Cursor>) -> (Vec<String>, Option<Cursor>) {
    let (mut read, kept) = (Vec::new(), store.follow());
    while let Some((next, update)) = kept.borrow().after(cursor) {
        read.push(match update {
            Update::Emptied => "-".to_owned(),
            Update::Arrived(delivery) => delivery.path.clone(),
        });
        cursor = Some(next.to_string().parse().unwrap());
        assert_eq!(cursor, Some(next));
    }
    (read, cursor)
}

#[test]
fn the_latest_two_hundred_are_kept_newest_first() {
    let store = Store::default();
    for number in 1..=MAX_DELIVERIES + 3 {
        store.add(delivery(None, &format!("/{number}")));
    }
    let expected: Vec<_> = (4..=MAX_DELIVERIES + 3).rev().map(|number| format!("/{number}")).collect();
    assert_eq!((expected.len(), paths(&store)), (200, expected));
}

#[test]
fn a_delivery_id_is_counted_and_none_is_no_id() {
    let store = Store::default();
    for id in [Some("a"), Some("b"), None, Some("a"), None, Some("a")] {
        store.add(delivery(id, "/"));
    }
    let seen: Vec<_> = store.newest_first().iter().map(|delivery| delivery.seen).collect();
    assert_eq!(seen, [3, 1, 2, 1, 1, 1]);
    store.clear();
    store.add(delivery(Some("a"), "/"));
    assert_eq!(store.newest_first()[0].seen, 1);
}

#[test]
fn a_follower_reads_each_delivery_once_and_in_order() {
    let store = Store::default();
    store.add(delivery(None, "/1"));
    store.add(delivery(None, "/2"));
    let (first, cursor) = read(&store, None);
    assert_eq!(first, ["-", "/1", "/2"]);
    assert_eq!(read(&store, cursor).0, Vec::<String>::new());
    store.add(delivery(None, "/3"));
    assert_eq!(read(&store, cursor).0, ["/3"]);
    for _ in 0..MAX_DELIVERIES {
        store.add(delivery(None, "/4"));
    }
    assert_eq!(
        read(&store, cursor).0,
        vec!["/4"; MAX_DELIVERIES],
        "deliveries that were forgotten meanwhile are left out"
    );
}

#[test]
fn a_follower_of_what_is_no_more_begins_anew() {
    let store = Store::default();
    store.add(delivery(None, "/1"));
    let (_, cursor) = read(&store, None);
    store.clear();
    store.add(delivery(None, "/2"));
    assert_eq!(read(&store, cursor).0, ["-", "/2"]);
    let another = Store::default();
    another.add(delivery(None, "/3"));
    assert_eq!(read(&another, cursor).0, ["-", "/3"], "another process counts from one again");
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let epoch = Uuid::new_v4();
    for bad in [String::new(), ".".to_owned(), epoch.to_string(), format!("{epoch}.-1"), format!("{epoch}.1.2")] {
        assert_eq!(bad.parse::<Cursor>(), Err(()), "{bad}");
    }
}
