//! Keys whose last transaction was cut in two.

use std::collections::BTreeSet;
use std::time::Duration;

use admin::keys::{KeyAdmin, MAX_OVERLAP};
use api::auth::KeyRecord;
use aws_sdk_dynamodb::types::AttributeValue;
use common::ids::{KeyId, UserId};
use common::scope::Scope;
use marketctl::repair::{Repair, RepairError, Repaired};
use tests::{
    RunningInstance, Stack, dynamodb, remove_key_attribute, restore_table, set_key_attribute, set_key_text, uuid,
};

use super::{changed, put_back, rows};

pub(super) const TABLE: &str = "marketplace-keys";
/// The rows of a creation: the key, and two that find it.
const CREATION_ROWS: usize = 3;
/// The rows of a rotation: the old key, and those of the new one.
const ROTATION_ROWS: usize = 4;
/// A rotation of which some rows were undone.
pub(super) struct CutRotation {
    user: UserId,
    old: (String, KeyRecord),
    new: (String, KeyRecord),
    /// For how long the old key is accepted beside the new one.
    overlap: Duration,
    /// Whether these are undone: the old key, the new key, its row by id, its row by user.
    undone: [bool; ROTATION_ROWS],
}

/// Repairs the keys through this administration, unless it is only a trial.
pub(super) async fn repair_keys(stack: &Stack, keys: KeyAdmin, dry_run: bool) -> Result<Repaired, RepairError> {
    let mut repair = Repair::new(stack.clock.clone(), dry_run);
    repair.keys(&keys, &[]).await.map(|()| repair.done)
}

/// Looks without writing, then repairs. Both find the same keys, and nothing is left afterwards.
async fn look_and_repair(stack: &Stack) {
    let repair = async |dry_run| repair_keys(stack, stack.admin.keys(), dry_run).await.unwrap();
    let before = rows(stack, TABLE).await;
    let looked = repair(true).await;
    assert_eq!(rows(stack, TABLE).await, before);
    let done = repair(false).await;
    assert!(done.unreadable.is_empty() && looked.changed_keys == done.changed_keys, "{looked:?} {done:?}");
    let again = repair(true).await;
    assert!(again.changed_keys.is_empty(), "{again:?}");
}

async fn is_accepted(running: &RunningInstance, key: &str) -> bool {
    let reply = running.client.get(key, "/v1/public/me").await;
    assert!([200, 401].contains(&reply.status), "{:?}", reply.json());
    reply.status == 200
}

async fn listed(stack: &Stack, user: UserId) -> Vec<KeyId> {
    let keys = stack.admin.keys().list(user).await.unwrap();
    assert!(keys.unreadable.is_empty(), "{:?}", keys.unreadable);
    keys.readable.iter().map(|key| key.key_id).collect()
}

/// Rotates a key of one user for each subset of the rows that this writes, at once and with an overlap, and undoes the
/// rows of that subset.
pub(super) async fn cut_rotations(stack: &Stack) -> Vec<CutRotation> {
    let subsets = 0..1_usize << ROTATION_ROWS;
    let cuts = subsets.flat_map(|subset| [Duration::ZERO, MAX_OVERLAP].map(|overlap| (subset, overlap)));
    let mut rotations = Vec::new();
    for (number, (subset, overlap)) in cuts.enumerate() {
        let user: UserId = uuid(1_000 + number as u128).into();
        let old = stack.key_of(user, &[Scope::CatalogRead]).await;
        let before = rows(stack, TABLE).await;
        let new = stack.admin.keys().rotate(old.1.key_id, overlap).await.unwrap();
        let after = rows(stack, TABLE).await;
        let written = changed(&before, &after);
        assert_eq!(written.len(), ROTATION_ROWS, "{written:?}");
        // What follows the transaction is in no restore that lacks a part of it.
        for (key, _) in before.iter().filter(|(key, row)| !written.contains(key) && after.get(*key) != Some(row)) {
            put_back(stack, TABLE, &before, key).await;
        }
        let undone: [bool; ROTATION_ROWS] = std::array::from_fn(|place| (subset >> place) & 1 == 1);
        for key in &written {
            let place = match key[0].split_once('#').unwrap().0 {
                "key" if before.contains_key(key) => 0,
                "key" => 1,
                "id" => 2,
                _ => 3,
            };
            if undone[place] {
                put_back(stack, TABLE, &before, key).await;
            }
        }
        let new = (new.text.reveal().to_owned(), new.record);
        rotations.push(CutRotation { user, old, new, overlap, undone });
    }
    rotations
}

impl CutRotation {
    /// Asserts that the old key is revoked unless the whole rotation was undone, or its row tells when the overlap ends.
    /// Whatever is accepted must be listed, and it must be possible to revoke it.
    pub(super) async fn assert_is_safe(&self, stack: &Stack, running: &RunningInstance) {
        let what = format!("{:?} undone, overlap {:?}", self.undone, self.overlap);
        let [has_old_end, has_new] = [0, 1].map(|place| !self.undone[place]);
        let is_undone = self.undone == [true; ROTATION_ROWS];
        let lives_on = has_old_end && !self.overlap.is_zero();
        assert_eq!(is_accepted(running, &self.old.0).await, is_undone || lives_on, "{what}: the old key");
        assert_eq!(is_accepted(running, &self.new.0).await, has_new, "{what}: the new key");
        let mut expected = vec![self.old.1.key_id];
        expected.extend(has_new.then_some(self.new.1.key_id));
        let mut listed = listed(stack, self.user).await;
        expected.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, expected, "{what}");
        let revoked = stack.admin.keys().revoke(self.new.1.key_id).await;
        assert_eq!(revoked.is_ok(), has_new, "{what}: {revoked:?}");
        assert!(!is_accepted(running, &self.new.0).await, "{what}: the new key, revoked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_whole_or_gone_whichever_rows_of_its_creation_a_restore_has() {
    let (stack, mut keys) = (Stack::new().await, Vec::new());
    for subset in 0..1_usize << CREATION_ROWS {
        let user: UserId = uuid(1_000 + subset as u128).into();
        let before = rows(&stack, TABLE).await;
        let (text, record) = stack.key_of(user, &[Scope::CatalogRead]).await;
        // In this order: the row by id, the key, the row by user.
        let written = changed(&before, &rows(&stack, TABLE).await);
        assert_eq!(written.len(), CREATION_ROWS, "{written:?}");
        let [no_id, no_key, no_user] = std::array::from_fn(|place| (subset >> place) & 1 == 1);
        for (key, is_undone) in written.iter().zip([no_id, no_key, no_user]) {
            if is_undone {
                put_back(&stack, TABLE, &before, key).await;
            }
        }
        keys.push((user, text, record.key_id, !no_key));
    }
    let running = stack.instance().await;
    for (_, text, _, is_there) in &keys {
        assert_eq!(is_accepted(&running, text).await, *is_there, "before the repair");
    }
    look_and_repair(&stack).await;
    for (user, text, id, is_there) in keys {
        assert_eq!(is_accepted(&running, &text).await, is_there);
        assert_eq!(listed(&stack, user).await, is_there.then_some(id).into_iter().collect::<Vec<_>>());
        assert_eq!(stack.admin.keys().revoke(id).await.is_ok(), is_there);
        assert!(!is_accepted(&running, &text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_is_revoked_whichever_rows_of_its_rotation_a_restore_has() {
    let stack = Stack::new().await;
    let rotations = cut_rotations(&stack).await;
    look_and_repair(&stack).await;
    let running = stack.instance().await;
    for rotation in &rotations {
        rotation.assert_is_safe(&stack, &running).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_were_revoked_after_the_restores_time_are_revoked_if_another_table_tells() {
    const RESTORED: &str = "marketplace-keys-2";
    let (stack, user): (_, UserId) = (Stack::new().await, uuid(1_000).into());
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(stack.key_of(user, &[Scope::CatalogRead]).await.1.key_id);
    }
    let [kept, revoked_before, replaced_before, revoked, rotated, replaced] = ids.try_into().unwrap();
    let admin = stack.admin.keys();
    admin.revoke(revoked_before).await.unwrap();
    let successor = admin.rotate(replaced_before, MAX_OVERLAP).await.unwrap().record.key_id;
    restore_table(&stack, TABLE, RESTORED).await;
    admin.revoke(revoked).await.unwrap();
    admin.rotate(rotated, Duration::ZERO).await.unwrap();
    admin.rotate(replaced, MAX_OVERLAP).await.unwrap();
    let damaged = rows(&stack, TABLE).await;

    let restored = || KeyAdmin::new(dynamodb(&stack), RESTORED.to_owned(), stack.clock.clone());
    let repair = async || {
        let mut repair = Repair::new(stack.clock.clone(), false);
        repair.keys(&restored(), &[stack.admin.keys()]).await.unwrap();
        repair.done.changed_keys.into_keys().collect::<BTreeSet<KeyId>>()
    };
    assert_eq!(repair().await, [revoked, rotated, replaced].into());
    assert_eq!(repair().await, BTreeSet::new());
    assert_eq!(rows(&stack, TABLE).await, damaged);
    let restored = restored();
    let keys = restored.list(user).await.unwrap().readable;
    let accepted = keys.iter().filter(|key| key.is_live(stack.now())).map(|key| key.key_id);
    assert_eq!(accepted.collect::<BTreeSet<KeyId>>(), [kept, replaced_before, successor].into());
}

/// A restore has the key as it was before it was revoked, and the rows that find it as they were afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn the_rows_that_find_an_accepted_key_stay() {
    let stack = Stack::new().await;
    let user: UserId = uuid(1_000).into();
    let (text, record) = stack.key_of(user, &[Scope::CatalogRead]).await;
    let before = rows(&stack, TABLE).await;
    stack.admin.keys().revoke(record.key_id).await.unwrap();
    set_key_text(&stack, &text, "status", "active").await;
    for added in ["ttl", "revoked_at"] {
        remove_key_attribute(&stack, &text, added).await;
    }
    look_and_repair(&stack).await;
    assert_eq!(rows(&stack, TABLE).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_newer_release_is_named_by_its_id_and_left_as_it_is() {
    let stack = Stack::new().await;
    let (text, record) = stack.key_of(uuid(1_000).into(), &[Scope::CatalogRead]).await;
    set_key_attribute(&stack, &text, "layout", AttributeValue::N("2".to_owned())).await;
    let before = rows(&stack, TABLE).await;
    let done = repair_keys(&stack, stack.admin.keys(), false).await.unwrap();
    let unreadable: Vec<_> = done.unreadable.iter().map(|unreadable| unreadable.row.as_str()).collect();
    assert_eq!(unreadable, [format!("id#{} hash", record.key_id)]);
    assert!(done.changed_keys.is_empty(), "{done:?}");
    assert_eq!(rows(&stack, TABLE).await, before);
}
