//! Webhook endpoints whose last transaction was cut in two.

use std::collections::BTreeSet;

use common::ids::{EndpointId, UserId};
use common::resources::Table;
use marketctl::repair::{Repair, RepairError, Repaired};
use tests::{Receiver, Stack, hand, sale, set_row_number, uuid};
use webhooks::Schedule;
use webhooks::delivery::{AfterFailure, Attempt, Delivery, Dispatch, Failure, Status, Token, after_failure, claim};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::notice::{DisabledNotice, EndpointNotice};
use webhooks::store::{DisableOutcome, WebhookStore};

use super::{Rows, changed, put_back, rows};

pub(super) const TABLE: &str = "marketplace-webhooks";
/// Nothing is sent there.
const NOWHERE: &str = "http://127.0.0.1:9/hook";

/// Repairs the endpoints through this store, unless it is only a trial.
pub(crate) async fn repair_endpoints(
    stack: &Stack,
    webhooks: WebhookStore,
    dry_run: bool,
) -> Result<Repaired, RepairError> {
    let mut repair = Repair::new(stack.clock.clone(), dry_run);
    repair.webhooks(&webhooks).await.map(|()| repair.done)
}

/// Returns the endpoints that a repair would bring in line.
pub(super) async fn look(stack: &Stack) -> BTreeSet<EndpointId> {
    let before = rows(stack, TABLE).await;
    let looked = repair_endpoints(stack, stack.webhooks().store, true).await.unwrap();
    assert_eq!(rows(stack, TABLE).await, before);
    looked.changed_endpoints.into_keys().collect()
}

/// Looks without writing, then repairs. Both find these endpoints, and nothing is left afterwards.
async fn look_and_repair(stack: &Stack, expected: &BTreeSet<EndpointId>) {
    assert_eq!(&look(stack).await, expected);
    let done = repair_endpoints(stack, stack.webhooks().store, false).await.unwrap();
    let changed: BTreeSet<EndpointId> = done.changed_endpoints.keys().copied().collect();
    assert!(done.unreadable.is_empty() && changed == *expected, "{done:?}");
    assert_eq!(look(stack).await, BTreeSet::new());
}

fn user(number: usize) -> UserId {
    uuid(1_000 + number as u128).into()
}

/// Returns which rows of a transaction a subset undoes.
fn undone<const ROWS: usize>(subset: usize) -> [bool; ROWS] {
    std::array::from_fn(|place| (subset >> place) & 1 == 1)
}

/// Undoes these of the rows that were written since `before`. They are ordered by their keys.
async fn undo<const ROWS: usize>(stack: &Stack, before: &Rows, undone: [bool; ROWS]) {
    let written = changed(before, &rows(stack, TABLE).await);
    assert_eq!(written.len(), ROWS, "{written:?}");
    for (key, _) in written.iter().zip(undone).filter(|(_, is_undone)| *is_undone) {
        put_back(stack, TABLE, before, key).await;
    }
}

async fn has_endpoint(stack: &Stack, user: UserId) -> bool {
    !stack.webhooks().list(user).await.unwrap().readable.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_whole_or_gone_whichever_rows_of_its_creation_a_restore_has() {
    let (stack, mut endpoints, mut expected) = (Stack::new().await, Vec::new(), BTreeSet::new());
    for subset in 0..4 {
        let before = rows(&stack, TABLE).await;
        let (endpoint, _) = stack.endpoint(user(subset), NOWHERE).await;
        let [no_endpoint, no_finder] = undone(subset);
        undo(&stack, &before, [no_endpoint, no_finder]).await;
        expected.extend((no_endpoint != no_finder).then_some(endpoint.id));
        endpoints.push((endpoint, !no_endpoint));
    }
    look_and_repair(&stack, &expected).await;
    let admin = stack.webhooks();
    for (endpoint, is_there) in endpoints {
        assert_eq!(has_endpoint(&stack, endpoint.account_id).await, is_there);
        assert_eq!(admin.disable(endpoint.id).await.is_ok(), is_there);
        if is_there {
            admin.remove(endpoint.id).await.unwrap();
        }
        stack.endpoint(endpoint.account_id, NOWHERE).await;
    }
    assert_eq!(look(&stack).await, BTreeSet::new());
}

/// An endpoint of whose removal some rows were undone.
pub(super) struct CutRemoval {
    endpoint: WebhookEndpoint,
    /// Whether these are undone: the account, the drain, the row that finds the endpoint.
    undone: [bool; 3],
}

impl CutRemoval {
    /// How many subsets there are of the rows that a removal writes.
    pub(super) const SUBSETS: usize = 8;

    /// Removes an endpoint with a pending delivery, and undoes the rows of this subset.
    pub(super) async fn new(stack: &Stack, url: &str, subset: usize) -> Self {
        let (endpoint, _) = stack.endpoint(user(subset), url).await;
        stack.fan_out(&[sale(1 + subset as u128, endpoint.account_id)]).await;
        stack.store_all_carried().await;
        let before = rows(stack, TABLE).await;
        // The delivery ends later. Here the restore has none of that.
        let store = stack.webhooks().store;
        assert!(store.remove_endpoint(endpoint.account_id, endpoint.id, stack.now()).await.unwrap());
        undo(stack, &before, undone::<3>(subset)).await;
        Self { endpoint, undone: undone(subset) }
    }

    /// Returns the endpoint if the removal is there in part.
    fn expected(&self) -> Option<EndpointId> {
        (self.undone[0] != self.undone[2]).then_some(self.endpoint.id)
    }

    /// Asserts that a look still finds the removal, unless its delivery has ended.
    pub(super) async fn assert_is_found_until_it_ends(&self, stack: &Stack, found: &BTreeSet<EndpointId>) {
        let Some(expected) = self.expected() else { return };
        let [delivery] = stack.deliveries(self.endpoint.id).await.try_into().unwrap();
        let has_ended = delivery.progress.status == Status::Failed;
        assert!(has_ended || found.contains(&expected), "{expected:?} is not in {found:?}");
    }

    /// Asserts that the endpoint is there only if the whole removal was undone, and hands its message to a sender.
    pub(super) async fn assert_is_made(&self, stack: &Stack) {
        let (endpoint, is_there) = (&self.endpoint, self.undone[0] && self.undone[2]);
        assert_eq!(has_endpoint(stack, endpoint.account_id).await, is_there);
        let drain = stack.webhooks().store.drain(endpoint.account_id).await.unwrap().unwrap();
        assert!(!(is_there && drain.removed.contains(&endpoint.id)), "its drain would end its deliveries");
        let [delivery] = stack.deliveries(endpoint.id).await.try_into().unwrap();
        let message = stack.next_message(delivery.id).await;
        assert!(hand(&stack.sender(), &[message]).await.is_empty());
        if is_there {
            stack.drain(endpoint.account_id).await;
        }
        let after = stack.webhooks().delivery(delivery.id).await.unwrap().progress;
        let ended = (Status::Failed, Some(Failure::EndpointRemoved));
        assert_eq!((after.status, after.failure), if is_there { (Status::Delivered, None) } else { ended });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_a_removed_endpoint_whichever_rows_of_its_removal_a_restore_has() {
    let (stack, receiver) = (Stack::new().await, Receiver::answering(200).await);
    let mut removals = Vec::new();
    for subset in 0..CutRemoval::SUBSETS {
        removals.push(CutRemoval::new(&stack, &receiver.url, subset).await);
    }
    let expected: BTreeSet<_> = removals.iter().filter_map(CutRemoval::expected).collect();
    look_and_repair(&stack, &expected).await;
    for removal in &removals {
        removal.assert_is_made(&stack).await;
    }
    assert_eq!(receiver.so_far().len(), 2);
}

/// Makes the last attempt of an endpoint's only delivery fail, up to the transaction that switches the endpoint off.
async fn last_attempt(stack: &Stack, endpoint: &WebhookEndpoint) -> (Delivery, Token) {
    let [delivery] = stack.deliveries(endpoint.id).await.try_into().unwrap();
    let partition = format!("delivery#{}", delivery.id);
    set_row_number(stack, Table::Webhooks, [&partition, "delivery"], "recorded", 6).await;
    let (store, lease) = (stack.webhooks().store, Token::random());
    let delivery = store.delivery(delivery.id).await.unwrap().unwrap();
    assert!(
        store
            .apply(delivery.id, delivery.endpoint_id, &claim(&Dispatch::next_of(&delivery), lease, stack.now()))
            .await
            .unwrap()
    );
    (delivery, lease)
}

async fn switch_off(stack: &Stack, endpoint: &WebhookEndpoint, delivery: &Delivery, lease: Token) -> DisabledNotice {
    let (now, dispatch) = (stack.now(), Dispatch::next_of(delivery));
    let failed = after_failure(&dispatch, lease, Attempt::lost(now), endpoint.epoch, false, Schedule::default(), now);
    let AfterFailure::GiveUp(step) = failed else { panic!("another attempt would follow") };
    let notice = DisabledNotice::new(endpoint, delivery, &Attempt::lost(now), now);
    let outcome = stack.webhooks().store.switch_off(&step, endpoint, &notice, now).await.unwrap();
    assert_eq!(outcome, DisableOutcome::Done);
    notice
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_off_and_its_owner_is_told_whichever_rows_of_its_switch_off_a_restore_has() {
    let (stack, mut switched, mut expected) = (Stack::new().await, Vec::new(), BTreeSet::new());
    for subset in 0..8 {
        let (endpoint, _) = stack.endpoint(user(subset), NOWHERE).await;
        stack.fan_out(&[sale(1 + subset as u128, endpoint.account_id)]).await;
        stack.store_all_carried().await;
        let (delivery, lease) = last_attempt(&stack, &endpoint).await;
        let before = rows(&stack, TABLE).await;
        let notice = switch_off(&stack, &endpoint, &delivery, lease).await;
        let [is_on, is_pending, no_notice] = undone(subset);
        undo(&stack, &before, [is_on, is_pending, no_notice]).await;
        expected.extend((is_on != no_notice).then_some(endpoint.id));
        switched.push((endpoint, notice, !(is_on && no_notice)));
    }
    look_and_repair(&stack, &expected).await;
    let admin = stack.webhooks();
    for (endpoint, notice, is_off) in &switched {
        assert_eq!(stack.endpoint_of(endpoint.account_id).await.is_on(), !is_off);
        let stored = admin.store.unsent_notice(notice.about.notice_id).await.unwrap();
        let DisabledNotice { about, delivery_id, disabled_at, .. } = notice.clone();
        // A notice that is made again does not know how the last attempt ended.
        let again =
            DisabledNotice { about, delivery_id, disabled_at, event: None, last_status: None, last_error: None };
        let stored = stored
            .map(|stored| [&again, notice].into_iter().any(|one| stored == EndpointNotice::Disabled(one.clone())));
        assert_eq!(stored, is_off.then_some(true));
    }
    let told = switched.iter().filter(|(.., is_off)| *is_off);
    let told: BTreeSet<_> = told.map(|(_, notice, _)| notice.about.notice_id).collect();
    stack.sweep().await;
    let notices = stack.take_notices().await;
    assert_eq!(notices.iter().map(|notice| notice.about.notice_id).collect::<BTreeSet<_>>(), told);
    for (endpoint, ..) in switched {
        admin.enable(endpoint.id).await.unwrap();
    }
    assert_eq!(look(&stack).await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_off_after_a_restore_has_another_notice_than_one_that_the_restore_undid() {
    let stack = Stack::new().await;
    let (endpoint, _) = stack.endpoint(user(1), NOWHERE).await;
    let (failing, _) = stack.endpoint(user(2), NOWHERE).await;
    stack.fan_out(&[sale(1, user(1)), sale(2, user(2))]).await;
    stack.store_all_carried().await;
    let (delivery, lease) = last_attempt(&stack, &failing).await;
    switch_off(&stack, &failing, &delivery, lease).await;
    let (delivery, lease) = last_attempt(&stack, &endpoint).await;
    let before = rows(&stack, TABLE).await;
    let undone_notice = switch_off(&stack, &endpoint, &delivery, lease).await;
    undo(&stack, &before, [true; 3]).await;

    look_and_repair(&stack, &BTreeSet::new()).await;
    let endpoint = stack.endpoint_of(user(1)).await;
    let notice = switch_off(&stack, &endpoint, &delivery, lease).await;
    assert_ne!(notice.about.notice_id, undone_notice.about.notice_id);
    // The one that was off keeps its notice, and begins a new epoch once it is on.
    assert_eq!(look(&stack).await, BTreeSet::new());
    let enabled = stack.webhooks().enable(failing.id).await.unwrap();
    assert!(enabled.epoch > failing.epoch + 1, "{}", enabled.epoch);
}
