//! The objects of all buckets as files, in the folder of the tables.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use platform::resources::OBJECT_KEEP;
use uuid::Uuid;

/// What is escaped in a key, so that it can be the name of a file. No such name begins with a dot.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
/// How the name of a file begins that is not completely written.
const UNFINISHED: &str = ".";

/// A folder for each bucket, with a file for each object.
pub(super) struct ObjectFolder(PathBuf);

impl ObjectFolder {
    /// Uses the folder of the tables.
    pub(super) fn new(data: &Path) -> Self {
        Self(data.join("objects"))
    }

    /// Returns the names of the buckets that have objects, or had some.
    pub(super) fn buckets(&self) -> io::Result<Vec<String>> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        fs::read_dir(&self.0)?.map(|bucket| name(&bucket?)).collect()
    }

    /// Reads the objects of a bucket, by their keys. Removes what is older than S3 would keep it, and what was not
    /// completely written.
    pub(super) fn objects(&self, bucket: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut objects = Vec::new();
        for file in fs::read_dir(self.0.join(bucket))? {
            let file = file?;
            let (name, age) = (name(&file)?, file.metadata()?.modified()?.elapsed());
            if name.starts_with(UNFINISHED) || age.is_ok_and(|age| age > OBJECT_KEEP) {
                fs::remove_file(file.path())?;
            } else {
                let key = percent_decode_str(&name).decode_utf8().map_err(io::Error::other)?;
                objects.push((key.into_owned(), fs::read(file.path())?));
            }
        }
        Ok(objects)
    }

    /// Writes an object, whole or not at all.
    pub(super) fn put(&self, bucket: &str, key: &str, content: &[u8]) -> io::Result<()> {
        let bucket = self.0.join(bucket);
        let unfinished = bucket.join(format!("{UNFINISHED}{}", Uuid::new_v4()));
        fs::create_dir_all(&bucket)?;
        fs::write(&unfinished, content)?;
        fs::rename(unfinished, bucket.join(file_name(key)))
    }

    /// Removes an object, if there is one.
    pub(super) fn remove(&self, bucket: &str, key: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(bucket).join(file_name(key))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn file_name(key: &str) -> String {
    utf8_percent_encode(key, ESCAPED).to_string()
}

/// Returns the name of a file or folder. All of them were named by this code.
fn name(entry: &fs::DirEntry) -> io::Result<String> {
    entry.file_name().into_string().map_err(|name| io::Error::other(format!("{} is not a name", name.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_s3_would_have_removed_is_gone_and_so_is_what_was_cut_short() {
        let data = tempfile::tempdir().unwrap();
        let folder = ObjectFolder::new(data.path());
        for key in ["old", "a/b c", "recent"] {
            folder.put("bucket", key, key.as_bytes()).unwrap();
        }
        let bucket = data.path().join("objects/bucket");
        let old = fs::File::options().write(true).open(bucket.join("old")).unwrap();
        let written = old.metadata().unwrap().modified().unwrap();
        old.set_modified(written - OBJECT_KEEP - Duration::from_secs(1)).unwrap();
        fs::write(bucket.join(".half"), "x").unwrap();

        assert_eq!(folder.buckets().unwrap(), ["bucket"]);
        let mut objects = folder.objects("bucket").unwrap();
        objects.sort();
        assert_eq!(objects, ["a/b c", "recent"].map(|key| (key.to_owned(), key.as_bytes().to_vec())));
        assert_eq!(fs::read_dir(bucket).unwrap().count(), 2, "files");
    }
}
