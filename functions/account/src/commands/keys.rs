//! Commands about keys.

use std::time::Duration;

use admin::audit::Subject;
use admin::keys::Rotated;
use admin::owner::Owner;
use auth::KeyStatus;
use platform::rows::Rows;

use crate::answer::Done;
use crate::document::{KeyList, KeyWithText, KeyWithUsage, RevokedKey, RotatedKey, ids};
use crate::error::CommandError;
use crate::parameters::{CreateKey, NoParameters, OneKey, RenameKey, RotateKey};

pub(super) async fn create(owner: Owner<'_>, parameters: CreateKey) -> Result<Done, CommandError> {
    let CreateKey { name, scopes, expires_at } = parameters;
    let (text, record) = owner.create_key(name, scopes, expires_at).await?;
    Ok(Done::new(&KeyWithText { record: &record, api_key: text.reveal() })?.about(record.key_id))
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
    let Rotated { text, record, old_expires_at, doubt } =
        owner.rotate_key(key_id, Duration::from_secs(overlap_seconds)).await?;
    let key = KeyWithText { record: &record, api_key: text.reveal() };
    let in_doubt = doubt.is_some();
    let done = Done::new(&RotatedKey { key, old_key_id: key_id, old_expires_at, in_doubt })?;
    let subject = Subject { new_key_id: Some(record.key_id), ..key_id.into() };
    Ok(Done { in_doubt, ..done.about(subject) })
}

pub(super) async fn revoke(owner: Owner<'_>, OneKey { key_id }: OneKey) -> Result<Done, CommandError> {
    match owner.revoke_key(key_id).await? {
        Some(record) => Done::new(&record),
        None => Done::new(&RevokedKey { key_id, status: KeyStatus::Revoked }),
    }
}
