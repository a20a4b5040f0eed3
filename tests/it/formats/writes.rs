//! This release writes what the golden files say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dynamo::{binary, bytes, text};
use super::golden;
use super::kinds::{BASE_CHUNKS, BASE_POINTER, KINDS};
use super::scene::{Scene, hash_of};

/// More bytes than the columns of a golden chunk have.
const MAX_COLUMNS_BYTES: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_written_as_the_golden_files_say() {
    let mut rows = BTreeMap::<&str, Vec<Value>>::new();
    for (kind, row) in Scene::new().await.rows().await {
        rows.entry(kind.name).or_default().push(row);
    }
    let chunks: BTreeMap<_, _> = BASE_CHUNKS.map(|name| (name, rows[name][0].clone())).into();
    for (name, written) in &chunks {
        rows.insert(*name, vec![golden_chunk(name, written)]);
    }
    let golden_hashes = BASE_CHUNKS.map(|name| hash_of(&rows[name][0]));
    for pointer in rows.get_mut(BASE_POINTER).unwrap() {
        let stream = usize::from(text(pointer, "pk").contains("listings"));
        assert_eq!(bytes(pointer, "hashes"), hash_of(&chunks[BASE_CHUNKS[stream]]));
        pointer["hashes"] = binary(&golden_hashes[stream]);
    }
    let mut differences = Vec::new();
    for kind in &KINDS {
        let rows = rows_of(&rows, kind.name);
        let packed: Vec<Value> = rows.iter().map(in_hex).filter(|packed| *packed != json!({})).collect();
        let found = if packed.is_empty() {
            json!({"about": kind.about, "rows": rows})
        } else {
            json!({"about": kind.about, "hex": packed, "rows": rows})
        };
        differences.extend(golden::difference(kind.name, kind.layout_in, &found));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn rows_of<'r>(rows: &'r BTreeMap<&str, Vec<Value>>, name: &str) -> &'r [Value] {
    rows.get(name).unwrap_or_else(|| panic!("the scene of tests/it/formats/scene.rs writes no {name}"))
}

/// Returns the binary attributes of a row in hex.
fn in_hex(row: &Value) -> Value {
    let attributes = row.as_object().unwrap().iter().filter(|(_, value)| value.get("B").is_some());
    attributes.map(|(name, _)| (name.clone(), json!(hex::encode(bytes(row, name))))).collect()
}

/// Returns the golden chunk if what was written holds the same. Their compressed bytes may differ.
fn golden_chunk(name: &str, written: &Value) -> Value {
    if golden::is_updating() {
        return written.clone();
    }
    let golden = golden::read(name)["rows"][0].take();
    let mut with_golden_bytes = written.clone();
    with_golden_bytes["packed"] = golden["packed"].clone();
    let is_same = parts(&golden) == parts(written) && golden == with_golden_bytes;
    if is_same { golden } else { written.clone() }
}

/// Returns the layout and the length of a chunk, and its columns.
fn parts(chunk: &Value) -> (Vec<u8>, Vec<u8>) {
    let packed = bytes(chunk, "packed");
    let (head, compressed) = packed.split_at(5);
    let columns = zstd::bulk::decompress(compressed, MAX_COLUMNS_BYTES).unwrap();
    assert_eq!(u32::from_le_bytes(head[1..].try_into().unwrap()) as usize, columns.len());
    (head.to_vec(), columns)
}
