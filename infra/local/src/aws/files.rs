//! Things that are kept in files beside the tables: the objects of S3, and the messages of the queues.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use uuid::Uuid;

/// What is escaped in a name, so that it can be that of a folder or file. No such name has a slash or begins with a dot, so
/// it leads nowhere else.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
/// The most bytes of a file's name, with every file system that is common.
const MAX_NAME_BYTES: usize = 255;
/// How the name of a file begins that is not completely written.
const UNFINISHED: &str = ".";

/// A folder with folders, each of which has a file for each thing that is kept.
pub(super) struct Files(pub(super) PathBuf);

impl Files {
    /// Returns the names of the folders that have files, or had some.
    pub(super) fn folders(&self) -> io::Result<Vec<String>> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        fs::read_dir(&self.0)?.map(|folder| unescaped(&name(&folder?)?)).collect()
    }

    fn folder(&self, folder: &str) -> PathBuf {
        self.0.join(escaped(folder))
    }

    /// Reads the files of a folder, by their names. Removes what is older than `keep`, and what was not completely written.
    pub(super) fn read(&self, folder: &str, keep: Option<Duration>) -> io::Result<Vec<(String, Vec<u8>)>> {
        let (mut files, folder) = (Vec::new(), self.folder(folder));
        if !folder.exists() {
            return Ok(files);
        }
        for file in fs::read_dir(folder)? {
            let file = file?;
            let (name, age) = (name(&file)?, file.metadata()?.modified()?.elapsed());
            if name.starts_with(UNFINISHED) || keep.is_some_and(|keep| age.is_ok_and(|age| age > keep)) {
                fs::remove_file(file.path())?;
            } else {
                files.push((unescaped(&name)?, fs::read(file.path())?));
            }
        }
        Ok(files)
    }

    /// Returns whether a thing with this name can be kept in a file.
    pub(super) fn takes(name: &str) -> bool {
        escaped(name).len() <= MAX_NAME_BYTES
    }

    /// Writes a file, whole or not at all.
    pub(super) fn put(&self, folder: &str, name: &str, content: &[u8]) -> io::Result<()> {
        let folder = self.folder(folder);
        let unfinished = folder.join(format!("{UNFINISHED}{}", Uuid::new_v4()));
        fs::create_dir_all(&folder)?;
        fs::write(&unfinished, content)?;
        fs::rename(unfinished, folder.join(escaped(name)))
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, folder: &str, name: &str) -> io::Result<()> {
        gone(fs::remove_file(self.folder(folder).join(escaped(name))))
    }

    /// Removes a folder, if it is there.
    pub(super) fn remove_all(&self, folder: &str) -> io::Result<()> {
        gone(fs::remove_dir_all(self.folder(folder)))
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn escaped(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

fn unescaped(name: &str) -> io::Result<String> {
    percent_decode_str(name).decode_utf8().map(Cow::into_owned).map_err(io::Error::other)
}

/// Returns the name of a file or folder. All of them were named by this code.
fn name(entry: &fs::DirEntry) -> io::Result<String> {
    entry.file_name().into_string().map_err(|name| io::Error::other(format!("{} is not a name", name.display())))
}

#[cfg(test)]
mod tests {
    use common::resources::OBJECT_KEEP;

    use super::*;

    #[test]
    fn what_s3_would_have_removed_is_gone_and_so_is_what_was_cut_short() {
        let data = tempfile::tempdir().unwrap();
        let folder = Files(data.path().to_owned());
        for key in ["old", "a/b c", "recent"] {
            folder.put("bucket", key, key.as_bytes()).unwrap();
        }
        let bucket = data.path().join("bucket");
        let old = fs::File::options().write(true).open(bucket.join("old")).unwrap();
        let written = old.metadata().unwrap().modified().unwrap();
        old.set_modified(written - OBJECT_KEEP - Duration::from_secs(1)).unwrap();
        fs::write(bucket.join(".half"), "x").unwrap();

        assert_eq!(folder.folders().unwrap(), ["bucket"]);
        let mut objects = folder.read("bucket", Some(OBJECT_KEEP)).unwrap();
        objects.sort();
        assert_eq!(objects, ["a/b c", "recent"].map(|key| (key.to_owned(), key.as_bytes().to_vec())));
        assert_eq!(fs::read_dir(bucket).unwrap().count(), 2, "files");
    }
}
