//! Commands about keys.

use std::time::Duration;

use admin::audit::Subject;
use admin::keys::document::{KeyWithText, KeyWithUsage, RevokedKey, RotatedKey};
use admin::owner::Owner;
use common::rows::Rows;

use crate::answer::Done;
use crate::document::{KeyList, ids};
use crate::error::CommandError;
use crate::parameters::{CreateKey, NoParameters, OneKey, RenameKey, RotateKey};

pub(super) async fn create(owner: Owner<'_>, parameters: CreateKey) -> Result<Done, CommandError> {
    let CreateKey { name, scopes, expires_at } = parameters;
    let (text, record) = owner.create_key(name, scopes, expires_at).await?;
    Ok(Done::new(&KeyWithText::new(&text, &record))?.about(record.key_id))
}

pub(super) async fn list(owner: Owner<'_>, NoParameters {}: NoParameters) -> Result<Done, CommandError> {
    let Rows { readable, unreadable } = owner.list_keys().await?;
    Done::new(&KeyList { keys: readable, unreadable: ids(&unreadable) })
}

pub(super) async fn show(owner: Owner<'_>, OneKey { key_id }: OneKey) -> Result<Done, CommandError> {
    let (record, usage) = owner.show_key(key_id).await?;
    Done::new(&KeyWithUsage { record: &record, usage: &usage })
}

pub(super) async fn rename(owner: Owner<'_>, parameters: RenameKey) -> Result<Done, CommandError> {
    let RenameKey { key_id, name } = parameters;
    Done::new(&owner.rename_key(key_id, name).await?)
}

pub(super) async fn rotate(owner: Owner<'_>, parameters: RotateKey) -> Result<Done, CommandError> {
    let RotateKey { key_id, overlap_seconds } = parameters;
    let rotated = owner.rotate_key(key_id, Duration::from_secs(overlap_seconds)).await?;
    let done = Done::new(&RotatedKey::new(key_id, &rotated))?;
    let subject = Subject { new_key_id: Some(rotated.record.key_id), ..key_id.into() };
    Ok(Done { in_doubt: rotated.doubt.is_some(), ..done.about(subject) })
}

pub(super) async fn revoke(owner: Owner<'_>, OneKey { key_id }: OneKey) -> Result<Done, CommandError> {
    match owner.revoke_key(key_id).await? {
        Some(record) => Done::new(&record),
        None => Done::new(&RevokedKey::new(key_id)),
    }
}
