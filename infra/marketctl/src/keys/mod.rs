//! The `keys` commands.

mod show;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use admin::audit::Subject;
use admin::keys::document::{
    IdentifiedKeys, KeyDocument, KeyWithText, KeyWithUsage, RevokedKey, RevokedKeys, RotatedKey, UsedKey,
};
use admin::keys::{AdminError, AllRevoked, KeyBounds, KeyUpdate, NewKey};
use api::auth::{KeyRecord, KeyText, KeyTextError};
use common::ids::KeyId;
use common::scope::Tier;
use common::store::StoreError;
use common::timestamp::Timestamp;
use flate2::bufread::MultiGzDecoder;
use serde_json::json;
use terminal::Output;

use crate::audit::{Asked, Audit, tell};
use crate::cli::{CreateKey, KeyChanges, KeyCommand};
use crate::confirm::Confirmation;
use crate::failure::{CommandFailure, none_left_out, shortened};
use crate::input::{GZIP, Source};
use crate::progress::Progress;
use crate::session::Session;

/// The most bytes that are read of a leaked text.
const MAX_LEAKED_BYTES: u64 = 16 * 1_024 * 1_024;
/// How many keys of all users people see.
const SHOWN: usize = 50;

pub(crate) async fn run(
    command: KeyCommand,
    session: &Session,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    confirm(&command, session, confirmation).await?;
    let mut audit = Audit::begin(session, asked(&command)).await;
    let outcome = Box::pin(perform(command, session, output, &mut audit)).await;
    audit.end(&outcome);
    outcome
}

/// Returns the change that a command asks for.
fn asked(command: &KeyCommand) -> Option<Asked> {
    match command {
        KeyCommand::Create(create) => Some(Asked::of_user("keys.create", create.user)),
        KeyCommand::Update { key_id, .. } => Some(Asked::about("keys.update", *key_id)),
        // The keys of a user have a line each.
        KeyCommand::Revoke { key_id, .. } => key_id.map(|key_id| Asked::about("keys.revoke", key_id)),
        KeyCommand::Rotate { key_id, .. } => Some(Asked::about("keys.rotate", *key_id)),
        KeyCommand::List { .. } | KeyCommand::Show { .. } | KeyCommand::Identify { .. } => None,
    }
}

/// Asks before keys end for good, and names whose they are.
async fn confirm(command: &KeyCommand, session: &Session, confirmation: Confirmation) -> Result<(), CommandFailure> {
    let named = async |id: KeyId| {
        let owner = session.keys().get(id).await.ok().map(|key| format!(" of user {}", key.user_id));
        format!("key {id}{}", owner.unwrap_or_default())
    };
    match command {
        KeyCommand::Revoke { key_id: Some(id), .. } if confirmation == Confirmation::Asked => {
            confirmation.ask(&format!("This ends {} at once.", named(*id).await))
        }
        KeyCommand::Revoke { user: Some(user), .. } => {
            let now = session.clock.now();
            let keys = if confirmation == Confirmation::Asked { session.keys().list(*user).await.ok() } else { None };
            let live = keys.map(|keys| keys.readable.iter().filter(|key| key.is_live(now)).count());
            let accepted = live.map_or_else(String::new, |live| format!(" Accepted are {live} now."));
            confirmation.require(&format!("This ends all keys of user {user} at once.{accepted}"))
        }
        KeyCommand::Rotate { key_id, overlap } if overlap.is_zero() && confirmation == Confirmation::Asked => {
            confirmation
                .ask(&format!("This ends {} at once; --overlap lets both be used for a while.", named(*key_id).await))
        }
        _ => Ok(()),
    }
}

async fn perform(
    command: KeyCommand,
    session: &Session,
    output: Output,
    audit: &mut Audit,
) -> Result<(), CommandFailure> {
    match command {
        KeyCommand::Create(create) => {
            let bounds = KeyBounds::of_operator(create.max_keys);
            let new = new_key(create, session.clock.now())?;
            let (text, record) = session.keys().with_bounds(bounds).create(new).await?;
            audit.made(record.key_id);
            output.print(&KeyWithText::new(&text, &record), show::created)?;
        }
        KeyCommand::List { user: Some(user), .. } => {
            let (keys, now) = (session.keys().list(user).await?, session.clock.now());
            let documents: Vec<_> = keys.readable.iter().map(|key| KeyDocument::new(key, now)).collect();
            output.print(&documents, |_| show::list(user, &keys.readable, now))?;
            none_left_out(&keys.unreadable)?;
        }
        KeyCommand::List { user: None, limit } => list_all(session, limit, output).await?,
        KeyCommand::Show { key_id } => {
            let (record, usage) = session.keys().show(key_id).await?;
            let now = session.clock.now();
            let shown = KeyWithUsage { key: KeyDocument::new(&record, now), usage: &usage };
            output.print(&shown, |shown| show::shown(shown, now))?;
        }
        KeyCommand::Identify { texts } => {
            let (mut known, keys) = (Vec::new(), session.keys());
            for text in leaked_keys(&texts)? {
                known.extend(keys.identify(&text).await?);
            }
            let now = session.clock.now();
            known.sort_by_key(|key| !key.is_live(now));
            let Some((first, others)) = known.split_first() else {
                let hint = "Its checksum is right, so it may be a key of another stack: name that with --stack. Every stack refuses a key that it does not have.";
                let failure = CommandFailure::new("no key of this stack has this text", hint);
                return Err(failure.with_member("reason", "unknown"));
            };
            let others = others.iter().map(|key| KeyDocument::new(key, now)).collect();
            let document = IdentifiedKeys { first: KeyDocument::new(first, now), others };
            output.print(&document, |_| show::identified(&known, now))?;
        }
        KeyCommand::Update { key_id, changes } => {
            let update = key_update(changes)?;
            let record = session.keys().update(key_id, update).await?;
            output.print(&record, show::updated)?;
        }
        KeyCommand::Revoke { key_id, user } => {
            let keys = session.keys();
            if let Some(user) = user {
                let AllRevoked { mut revoked, failed } = keys.revoke_all(user).await?;
                revoked.sort_unstable();
                tell(session, "keys.revoke", revoked.iter().map(|key_id| (Some(user), (*key_id).into()))).await;
                if revoked.is_empty() && failed.is_empty() {
                    let list = keys.list(user).await?;
                    if list.readable.is_empty() && list.unreadable.is_empty() {
                        let hint = "Is it the id of another user? `marketctl keys show KEY_ID` names a key's user.";
                        return Err(CommandFailure::new(format!("user {user} has no keys"), hint));
                    }
                }
                output.print(&RevokedKeys { user_id: user, revoked }, show::all_revoked)?;
                none_failed(&failed)?;
            } else if let Some(key_id) = key_id {
                match keys.revoke(key_id).await? {
                    Some(record) => output.print(&record, show::revoked)?,
                    None => output.print(&RevokedKey::new(key_id), show::revoked_unread)?,
                }
            }
        }
        KeyCommand::Rotate { key_id, overlap } => {
            let rotated = session.keys().rotate(key_id, overlap).await?;
            audit.made(Subject { new_key_id: Some(rotated.record.key_id), ..key_id.into() });
            if rotated.doubt.is_some() {
                audit.doubt();
            }
            output.print(&RotatedKey::new(key_id, &rotated), show::rotated)?;
            if let Some(cause) = rotated.doubt {
                return Err(in_doubt(key_id, &rotated.record, &cause));
            }
        }
    }
    Ok(())
}

/// Lists the keys of all users, those with most requests today first.
async fn list_all(session: &Session, limit: Option<u32>, output: Output) -> Result<(), CommandFailure> {
    let progress = Progress::start();
    let mut keys = session.keys().list_all(|found| progress.show_rows(found, None, "keys")).await?;
    drop(progress);
    let now = session.clock.now();
    let most = if output == Output::Json { usize::MAX } else { SHOWN };
    let most = limit.map_or(most, |limit| limit as usize);
    keys.readable.sort_by_cached_key(|(key, usage)| (Reverse(usage.requests_on_day_of(now)), key.user_id, key.key_id));
    let all = keys.readable.len();
    let used = keys
        .readable
        .iter()
        .take(most)
        .map(|(key, usage)| UsedKey { key: KeyDocument::new(key, now), requests_today: usage.requests_on_day_of(now) });
    output.print(&used.collect::<Vec<_>>(), |used| show::used(used, all, now))?;
    none_left_out(&keys.unreadable)
}

fn new_key(create: CreateKey, now: Timestamp) -> Result<NewKey, CommandFailure> {
    let CreateKey { user, name, tier, scopes, expires_at, expires_in, preview, .. } = create;
    check_offered(tier, preview)?;
    if expires_in.is_some_and(|length| length.is_zero()) {
        return Err(CommandFailure::invalid("expires-in", "must be at least 1s", "Nothing was created."));
    }
    let in_millis = |length: Duration| now.plus_millis(i64::try_from(length.as_millis()).unwrap_or(i64::MAX));
    let expires_at = expires_at.or_else(|| expires_in.map(in_millis));
    Ok(NewKey { user_id: user, name, tier, limit_override: None, scopes: scopes.into_iter().collect(), expires_at })
}

fn key_update(changes: KeyChanges) -> Result<KeyUpdate, CommandFailure> {
    let KeyChanges { name, tier, limit, preview } = changes;
    tier.map_or(Ok(()), |tier| check_offered(tier, preview))?;
    Ok(KeyUpdate { name, tier, limit })
}

/// Refuses a tier that is coming soon, unless `--preview` is given.
fn check_offered(tier: Tier, preview: bool) -> Result<(), CommandFailure> {
    if !tier.is_coming_soon() || preview {
        return Ok(());
    }
    let reason = format!("the tier {} is coming soon", tier.as_str());
    let hint = "Add --preview to give the key this tier anyway, or choose --tier free.";
    Err(CommandFailure::invalid("tier", &reason, hint))
}

/// Reads leaked texts, and finds the keys in them. No error repeats a text.
fn leaked_keys(sources: &[Source]) -> Result<Vec<KeyText>, CommandFailure> {
    let (mut keys, mut error) = (Vec::new(), KeyTextError::NotAKey);
    for source in sources {
        let mut text = String::from_utf8_lossy(&leaked_bytes(source)?).into_owned();
        // URLs escape the underscore, and UTF-16 has a zero beside each letter.
        text = text.replace("%5F", "_").replace("%5f", "_");
        for text in [text.replace('\0', ""), text] {
            match KeyText::find(&text) {
                Ok(found) => keys.extend(found),
                Err(KeyTextError::WrongChecksum) => error = KeyTextError::WrongChecksum,
                Err(KeyTextError::NotAKey) => {}
            }
        }
    }
    let mut seen = BTreeSet::new();
    keys.retain(|key| seen.insert(key.hash().hex()));
    let (reason, message, hint) = match error {
        _ if !keys.is_empty() => return Ok(keys),
        KeyTextError::NotAKey => (
            "not_a_key",
            "there is no API key in the text",
            "A key is `sk_` and 49 letters and digits, without a break. It may stand anywhere in the text.",
        ),
        KeyTextError::WrongChecksum => (
            "wrong_checksum",
            "there is what looks like an API key, but its checksum is wrong",
            "No stack has a key with this text: a character is wrong, or somebody made it up.",
        ),
    };
    Err(CommandFailure::new(message, hint).with_member("reason", reason))
}

/// Reads a leaked text, and unpacks what gzip has packed.
fn leaked_bytes(source: &Source) -> Result<Vec<u8>, CommandFailure> {
    let mut bytes = Vec::new();
    if *source == Source::Stdin && io::stdin().is_terminal() {
        let _ = writeln!(io::stderr(), "Paste the text, then press Enter and Ctrl-D.");
    }
    let mut stream = source.open()?.stream.take(MAX_LEAKED_BYTES + 1);
    let read = stream.read_to_end(&mut bytes).and_then(|_| {
        if !bytes.starts_with(GZIP) {
            return Ok(bytes.len());
        }
        let packed = std::mem::take(&mut bytes);
        MultiGzDecoder::new(packed.as_slice()).take(MAX_LEAKED_BYTES + 1).read_to_end(&mut bytes)
    });
    read.map_err(|error| {
        let message = format!("the text cannot be read: {error}");
        CommandFailure::new(message, "Give it on standard input, or name its file.").with_member("reason", "unread")
    })?;
    if bytes.len() as u64 > MAX_LEAKED_BYTES {
        let hint = "Give a part of it, for example `grep -ho 'sk_[0-9A-Za-z]*' FILE | marketctl keys identify -`.";
        return Err(CommandFailure::new("the text is longer than 16 MiB", hint).with_member("reason", "too_long"));
    }
    Ok(bytes)
}

/// Some keys of a user may still be accepted.
fn none_failed(failed: &[(KeyId, AdminError)]) -> Result<(), CommandFailure> {
    if failed.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = failed.iter().map(|(key_id, _)| key_id).collect();
    let hint = "Run the command again. `marketctl repair --table keys` mends rows that cannot be read.";
    let failure = CommandFailure::new(format!("keys that may still be accepted: {}", failed.len()), hint);
    Err(failure
        .with_details(failed.iter().map(|(key_id, error)| format!("{key_id}: {error}")))
        .with_member("failed", ids))
}

/// It is not known whether `new` has replaced the key `old`.
fn in_doubt(old: KeyId, new: &KeyRecord, cause: &StoreError) -> CommandFailure {
    let KeyRecord { key_id, user_id, last4, .. } = new;
    let message = format!("it is not known whether key {old} was replaced: {cause}");
    CommandFailure::new(shortened(&message), "Keep the printed text until you know.")
        .with_details([
            format!("To find out: marketctl keys list --user {user_id}"),
            format!("If it lists key {key_id}, with the last 4 characters {last4}: the new key replaced key {old}. Use the printed text."),
            "If it does not list that key after a minute: nothing was changed, and the printed text is worthless. Rotate the key again.".to_owned(),
        ])
        .with_member("in_doubt", json!({ "user_id": user_id, "old_key_id": old, "new_key_id": key_id, "new_last4": last4 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use admin::ErrorCode;
    use api::auth::KeyStatus;
    use common::scope::Scope;

    const OLD: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    const NEW: &str = "6f9619ff-8b86-d011-b42d-00c04fc96400";

    #[test]
    fn a_tier_that_is_coming_soon_needs_preview() {
        for tier in Tier::ALL {
            let refusal = check_offered(tier, false).err().map(|refusal| refusal.code());
            assert_eq!(refusal, tier.is_coming_soon().then_some(Some(ErrorCode::Invalid)), "{tier}");
            assert!(check_offered(tier, true).is_ok());
        }
    }

    #[test]
    fn a_rotation_in_doubt_says_where_to_look() {
        let new = KeyRecord {
            key_id: NEW.parse().unwrap(),
            user_id: OLD.parse().unwrap(),
            name: None,
            tier: Tier::Free,
            scopes: [Scope::CatalogRead].into(),
            limit: Tier::Free.limit(),
            limit_override: None,
            status: KeyStatus::Active,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            last_used_at: None,
            last4: "k8Ez".to_owned(),
            replaced_by: None,
            revoked_at: None,
        };
        let text = in_doubt(OLD.parse().unwrap(), &new, &StoreError::Unavailable("no answer".to_owned())).text();
        for expected in [format!("keys list --user {OLD}"), format!("key {NEW}"), "k8Ez".to_owned()] {
            assert!(text.contains(&expected), "{text}");
        }
    }
}
