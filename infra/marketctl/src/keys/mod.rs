//! The `keys` commands.

mod details;
mod error;
mod identify;
mod show;

use admin::audit::Subject;
use admin::keys::document::{KeyWithText, KeyWithUsage, RevokedKey, RotatedKey};
use admin::keys::{KeyUpdate, LimitChange, NewKey};
use types::scope::Tier;

use error::{ComingSoon, RotationInDoubt};
use identify::{IdentifyError, read_key};

use crate::audit::{Asked, Audit};
use crate::cli::{CreateKey, KeyChanges, KeyCommand};
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::session::Session;
use crate::unreadable::none_left_out;

pub(crate) async fn run(command: KeyCommand, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let mut audit = Box::pin(Audit::begin(stack, asked(&command))).await?;
    let outcome = Box::pin(perform(command, stack, output, &mut audit)).await;
    audit.end(&outcome);
    outcome
}

/// Returns the change that a command asks for.
fn asked(command: &KeyCommand) -> Option<Asked> {
    match command {
        KeyCommand::Create(create) => Some(Asked::of_user("keys.create", create.user)),
        KeyCommand::Update { key_id, .. } => Some(Asked::about("keys.update", *key_id)),
        KeyCommand::Revoke { key_id } => Some(Asked::about("keys.revoke", *key_id)),
        KeyCommand::Rotate { key_id, .. } => Some(Asked::about("keys.rotate", *key_id)),
        KeyCommand::List { .. } | KeyCommand::Show { .. } | KeyCommand::Identify { .. } => None,
    }
}

async fn perform(command: KeyCommand, stack: &str, output: Output, audit: &mut Audit) -> Result<(), CommandFailure> {
    match command {
        KeyCommand::Create(create) => {
            let new = new_key(create)?;
            let (text, record) = Session::open(stack).await?.keys().create(new).await?;
            audit.made(record.key_id);
            output.print(&KeyWithText::new(&text, &record), show::created)
        }
        KeyCommand::List { user } => {
            let session = Session::open(stack).await?;
            let keys = session.keys().list(user).await?;
            output.print(&keys.readable, |keys| show::list(user, keys, session.clock.now()))?;
            none_left_out(keys.unreadable)
        }
        KeyCommand::Show { key_id } => {
            let session = Session::open(stack).await?;
            let (record, usage) = session.keys().show(key_id).await?;
            let key = KeyWithUsage { record: &record, usage: &usage };
            output.print(&key, |key| details::shown(key, session.clock.now()))
        }
        KeyCommand::Identify { text } => {
            let text = read_key(&text)?;
            let session = Session::open(stack).await?;
            let key = session.keys().identify(&text).await?.ok_or(IdentifyError::Unknown)?;
            output.print(&key, |key| details::identified(key, session.clock.now()))
        }
        KeyCommand::Update { key_id, changes } => {
            let update = key_update(changes)?;
            let record = Session::open(stack).await?.keys().update(key_id, update).await?;
            output.print(&record, show::updated)
        }
        KeyCommand::Revoke { key_id } => match Session::open(stack).await?.keys().revoke(key_id).await? {
            Some(record) => output.print(&record, show::revoked),
            None => output.print(&RevokedKey::new(key_id), show::revoked_unread),
        },
        KeyCommand::Rotate { key_id, overlap } => {
            let rotated = Session::open(stack).await?.keys().rotate(key_id, overlap).await?;
            audit.made(Subject { new_key_id: Some(rotated.record.key_id), ..key_id.into() });
            if rotated.doubt.is_some() {
                audit.doubt();
            }
            output.print(&RotatedKey::new(key_id, &rotated), show::rotated)?;
            let Some(cause) = rotated.doubt else { return Ok(()) };
            Err(RotationInDoubt { old: key_id, new: rotated.record, cause }.into())
        }
    }
}

fn new_key(create: CreateKey) -> Result<NewKey, ComingSoon> {
    let CreateKey { user, name, tier, scopes, expires_at, preview } = create;
    check_offered(tier, preview)?;
    Ok(NewKey { user_id: user, name, tier, limit_override: None, scopes: scopes.into_iter().collect(), expires_at })
}

fn key_update(changes: KeyChanges) -> Result<KeyUpdate, ComingSoon> {
    let KeyChanges { name, tier, limit, follow_tier, preview } = changes;
    tier.map_or(Ok(()), |tier| check_offered(tier, preview))?;
    let limit = if follow_tier { Some(LimitChange::FollowTier) } else { limit.map(LimitChange::Own) };
    Ok(KeyUpdate { name, tier, limit })
}

fn check_offered(tier: Tier, preview: bool) -> Result<(), ComingSoon> {
    if tier.is_coming_soon() && !preview { Err(ComingSoon(tier)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::scope::Scope;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

    fn asked(tier: Tier, preview: bool) -> CreateKey {
        let user = ID.parse().unwrap();
        CreateKey { user, name: None, tier, scopes: vec![Scope::CatalogRead], expires_at: None, preview }
    }

    #[test]
    fn a_tier_that_is_coming_soon_needs_preview() {
        assert!(new_key(asked(Tier::Free, false)).is_ok());
        for tier in [Tier::Pro, Tier::Business] {
            assert!(matches!(new_key(asked(tier, false)), Err(ComingSoon(refused)) if refused == tier));
            assert!(new_key(asked(tier, true)).is_ok());
        }
    }
}
