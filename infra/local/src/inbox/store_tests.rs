use bytes::Bytes;
use http::Request;
use types::timestamp::Timestamp;

use super::*;

fn delivery(id: Option<&str>, path: &str) -> Delivery {
    let request = id.into_iter().fold(Request::post(path), |request, id| request.header("webhook-id", id));
    let (head, ()) = request.body(()).unwrap().into_parts();
    Delivery::of(&head, Bytes::new(), &[], Timestamp::from_millis(0))
}

fn paths(store: &Store) -> Vec<String> {
    store.newest_first().iter().map(|delivery| delivery.path.clone()).collect()
}

/// Reads from a cursor to the end. Returns the paths, with `-` where the inbox was emptied.
fn read(store: &Store, mut cursor: Option<Cursor>) -> (Vec<String>, Option<Cursor>) {
    let (mut read, kept) = (Vec::new(), store.follow());
    while let Some((next, news)) = kept.borrow().after(cursor) {
        read.push(match news {
            News::Emptied => "-".to_owned(),
            News::Arrived(delivery) => delivery.path.clone(),
        });
        cursor = Some(next.to_string().parse().unwrap());
        assert_eq!(cursor, Some(next));
    }
    (read, cursor)
}

#[test]
fn the_latest_two_hundred_are_kept_newest_first() {
    let store = Store::default();
    for number in 1..=KEPT + 3 {
        store.keep(delivery(None, &format!("/{number}")));
    }
    let expected: Vec<_> = (4..=KEPT + 3).rev().map(|number| format!("/{number}")).collect();
    assert_eq!((expected.len(), paths(&store)), (200, expected));
}

#[test]
fn a_delivery_id_is_counted_and_none_is_no_id() {
    let store = Store::default();
    for id in [Some("a"), Some("b"), None, Some("a"), None, Some("a")] {
        store.keep(delivery(id, "/"));
    }
    let seen: Vec<_> = store.newest_first().iter().map(|delivery| delivery.seen).collect();
    assert_eq!(seen, [3, 1, 2, 1, 1, 1]);
    store.empty();
    store.keep(delivery(Some("a"), "/"));
    assert_eq!(store.newest_first()[0].seen, 1);
}

#[test]
fn a_follower_reads_each_delivery_once_and_in_order() {
    let store = Store::default();
    store.keep(delivery(None, "/1"));
    store.keep(delivery(None, "/2"));
    let (first, cursor) = read(&store, None);
    assert_eq!(first, ["-", "/1", "/2"]);
    assert_eq!(read(&store, cursor).0, Vec::<String>::new());
    store.keep(delivery(None, "/3"));
    assert_eq!(read(&store, cursor).0, ["/3"]);
    for _ in 0..KEPT {
        store.keep(delivery(None, "/4"));
    }
    assert_eq!(read(&store, cursor).0, vec!["/4"; KEPT], "deliveries that were forgotten meanwhile are left out");
}

#[test]
fn a_follower_of_what_is_no_more_begins_anew() {
    let store = Store::default();
    store.keep(delivery(None, "/1"));
    let (_, cursor) = read(&store, None);
    store.empty();
    store.keep(delivery(None, "/2"));
    assert_eq!(read(&store, cursor).0, ["-", "/2"]);
    let another = Store::default();
    another.keep(delivery(None, "/3"));
    assert_eq!(read(&another, cursor).0, ["-", "/3"], "another process counts from one again");
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let epoch = Uuid::new_v4();
    for bad in [String::new(), ".".to_owned(), epoch.to_string(), format!("{epoch}.-1"), format!("{epoch}.1.2")] {
        assert_eq!(bad.parse::<Cursor>(), Err(()), "{bad}");
    }
}
