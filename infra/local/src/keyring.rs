//! Keeps the keyring in the folder of the tables. Secrets Manager is in memory here, and the secrets in the tables
//! are sealed under its keyring, so losing the keyring would make them useless.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use platform::store::explain;

use crate::workers::BackgroundTask;

/// The time between two reads of the keyring. A rotated one is on disk after about this time.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Only the user who runs this may read and write the file.
const FILE_MODE: u32 = 0o600;

/// Returns the path of a folder's keyring.
fn file(folder: &Path) -> PathBuf {
    folder.join("keyring.json")
}

/// Reads the keyring of a folder, if it has one.
pub fn read(folder: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file(folder)) {
        Ok(document) => Ok(Some(document)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a keyring into a folder, whole or not at all.
pub fn write(folder: &Path, document: &str) -> io::Result<()> {
    let (new, file) = (folder.join("keyring.json.new"), file(folder));
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&new)?;
    written.set_permissions(Permissions::from_mode(FILE_MODE))?;
    written.write_all(document.as_bytes())?;
    written.sync_all()?;
    fs::rename(new, file)
}

/// From now on, copies the keyring from Secrets Manager into a folder whenever it changes.
pub fn save_changes(folder: PathBuf, client: Client, name: String) -> BackgroundTask {
    BackgroundTask::start(async move {
        let mut saved = read(&folder).ok().flatten();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let found = client.get_secret_value().secret_id(&name).send().await;
            let current = match found {
                Ok(found) => found.secret_string,
                Err(error) => {
                    tracing::warn!(error = explain(&error), "cannot read the keyring");
                    continue;
                }
            };
            if let Some(document) = current.filter(|current| saved.as_ref() != Some(current)) {
                match write(&folder, &document) {
                    Ok(()) => saved = Some(document),
                    Err(error) => tracing::error!(%error, "cannot save the keyring"),
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        write(folder.path(), "first").unwrap();
        write(folder.path(), "second").unwrap();
        assert_eq!(read(folder.path()).unwrap().as_deref(), Some("second"));
        assert_eq!(fs::metadata(file(folder.path())).unwrap().permissions().mode() & 0o777, FILE_MODE);
    }
}
