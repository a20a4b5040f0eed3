//! This release writes what the golden files say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::base_bucket;

use super::dynamo::{binary, bytes, text};
use super::golden;
use super::kinds::{BASE_MANIFEST, BASE_PARTS, KINDS, PART};
use super::scene::{Scene, hash_of};

/// More bytes than the columns of a golden part have.
const MAX_COLUMNS_BYTES: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_written_as_the_golden_files_say() {
    let mut rows = BTreeMap::<&str, Vec<Value>>::new();
    let scene = Scene::new().await;
    for (kind, row) in scene.rows().await {
        rows.entry(kind.name).or_default().push(row);
    }
    let mut differences = Vec::new();
    for (manifest, (name, layout_in)) in rows.get_mut(BASE_MANIFEST).unwrap().iter_mut().zip(BASE_PARTS) {
        let part = golden_part(name, written_part(&scene, manifest).await);
        let found = json!({"about": PART, "hex": hex::encode(&part), "packed": binary(&part)});
        differences.extend(golden::difference(name, layout_in, &found));
        *manifest = with_hash_of(manifest, &part);
    }
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

/// Returns the only part that a manifest names.
async fn written_part(scene: &Scene, manifest: &Value) -> Vec<u8> {
    let data: Value = serde_json::from_str(text(manifest, "data")).unwrap();
    let part = &data["parts"][0];
    let key = scene.as_written(part["key"].as_str().unwrap());
    let written = base_bucket(&scene.stack.aws.endpoint_url).get(&key).await.unwrap().unwrap();
    assert_eq!(part["hash"], hex::encode(hash_of(&written)));
    written.to_vec()
}

/// Returns the golden part if what was written holds the same. Their compressed bytes may differ.
fn golden_part(name: &str, written: Vec<u8>) -> Vec<u8> {
    if golden::is_updating() {
        return written;
    }
    let golden = bytes(&golden::read(name), "packed");
    if parts(&golden) == parts(&written) { golden } else { written }
}

fn with_hash_of(manifest: &Value, part: &[u8]) -> Value {
    let data: Value = serde_json::from_str(text(manifest, "data")).unwrap();
    let written = data["parts"][0]["hash"].as_str().unwrap();
    let mut with_hash = manifest.clone();
    with_hash["data"] = json!({"S": text(manifest, "data").replace(written, &hex::encode(hash_of(part)))});
    with_hash
}

/// Returns the layout and the length of packed columns, and the columns.
fn parts(packed: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (head, compressed) = packed.split_at(5);
    let columns = zstd::bulk::decompress(compressed, MAX_COLUMNS_BYTES).unwrap();
    assert_eq!(u32::from_le_bytes(head[1..].try_into().unwrap()) as usize, columns.len());
    (head.to_vec(), columns)
}
