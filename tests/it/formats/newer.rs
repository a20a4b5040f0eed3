//! A layout that this release does not know is refused by name, and is never read as if it were a known one.

use common::records::{PublicItem, PublicListing};
use common::rows::Rows;
use common::store::StoreError;
use market::{Log, Record};
use serde_json::{Value, json};
use tests::{Stack, uuid};
use webhooks::QueueMessage;
use webhooks::notice::disabled_notice_id;

use super::dynamo::{binary, bytes};
use super::golden;
use super::loaded::{keyring, loaded};
use super::scene::{endpoint, user};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_newer_layout_is_an_error_that_says_so() {
    let stack = raised().await;
    let (stores, admin) = (stack.admin.stores(), stack.webhooks());
    let (market, store) = (&stores.market, &admin.store);
    let log = Log::<PublicItem>::new(market.clone());
    let notice = disabled_notice_id(uuid(0xe3).into(), 1);
    let refused: [(&str, String); 11] = [
        ("stream head", error(log.head().await)),
        ("entity", error(market.item(&"ak-47-redline".parse().unwrap()).await)),
        ("marketplace", first_unreadable(&market.marketplaces().await.unwrap())),
        ("quote", first_unreadable(&market.quotes(uuid(7).into()).await.unwrap())),
        ("balance", error(stores.accounts.balance(user()).await)),
        ("account's endpoints", error(store.endpoint(user(), endpoint()).await)),
        ("finder of an endpoint", error(store.owner_of(endpoint()).await)),
        ("delivery", error(store.delivery(uuid(0xd3).into()).await)),
        ("notice", error(store.unsent_notice(notice).await)),
        ("drain", error(store.drain(user()).await)),
        ("finder of a key", first_unreadable(&stack.admin.keys().list(user()).await.unwrap())),
    ];
    for (format, text) in refused {
        assert!(text.ends_with(&format!("{format}: layout 2, written by a newer release")), "{text}");
    }
}

/// Returns a stack whose rows all have a layout of a newer release.
async fn raised() -> Stack {
    let raise = |mut row: Value| {
        row["layout"] = json!({"N": "2"});
        row
    };
    loaded(|_, row| raise(row), &keyring()).await
}

fn error<T>(outcome: Result<T, StoreError>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

fn first_unreadable<T>(rows: &Rows<T>) -> String {
    rows.unreadable.first().unwrap().to_string()
}

/// Gives the packed bytes in a kind's golden rows another layout, and returns the stack.
async fn repacked(name: &str, attribute: &str, layout: u8) -> Stack {
    let change = |mut row: Value| {
        let packed = bytes(&row, attribute);
        row[attribute] = binary(&[&[layout][..], &packed[1..]].concat());
        row
    };
    loaded(|kind, row| if kind.name == name { change(row) } else { row }, &keyring()).await
}

async fn assert_a_newer_log_entry_is_refused<R: Record>(name: &str) {
    let layout = R::LOG_ENTRY.reads + 1;
    let stack = repacked(name, "changes", layout).await;
    let read = Log::<R>::new(stack.admin.stores().market).since(0).await;
    let expected = format!("unreadable row: {}: layout {layout}, written by a newer release", R::LOG_ENTRY.name);
    assert_eq!(read.map(drop).unwrap_err().to_string(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_bytes_of_a_newer_layout_are_an_error_that_says_so() {
    assert_a_newer_log_entry_is_refused::<PublicItem>("log-entry-catalog").await;
    assert_a_newer_log_entry_is_refused::<PublicListing>("log-entry-listings").await;
}

#[test]
fn a_message_of_a_newer_layout_is_an_error_that_says_so() {
    for name in ["first", "attempt", "drain-message"] {
        let mut message = golden::read(name)["message"].take();
        message["layout"] = json!(2);
        let refused = QueueMessage::parse(&message.to_string()).unwrap_err();
        assert_eq!(refused.to_string(), "unreadable message: delivery queue: layout 2, written by a newer release");
    }
}
