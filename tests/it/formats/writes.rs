//! This release writes what the golden files say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::base_bucket;

use super::dynamo::{bytes, text};
use super::golden;
use super::kinds::{BASE_CHUNKS, BASE_MANIFEST, KINDS, ONLY_READ};
use super::scene::{Scene, hash_of};

/// More bytes than the columns of a golden chunk have.
const MAX_COLUMNS_BYTES: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_written_as_the_golden_files_say() {
    let mut rows = BTreeMap::<&str, Vec<Value>>::new();
    let scene = Scene::new().await;
    for (kind, row) in scene.rows().await {
        rows.entry(kind.name).or_default().push(row);
    }
    for manifest in rows.get_mut(BASE_MANIFEST).unwrap() {
        *manifest = with_golden_parts(&scene, manifest).await;
    }
    let mut differences = Vec::new();
    for kind in KINDS.iter().filter(|kind| !ONLY_READ.contains(&kind.name)) {
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

/// Returns the manifest with the hash of the golden part, and asserts that what was written holds the same. Their
/// compressed bytes may differ.
async fn with_golden_parts(scene: &Scene, manifest: &Value) -> Value {
    let stream = usize::from(text(manifest, "pk").contains("listings"));
    let golden = bytes(&golden::read(BASE_CHUNKS[stream])["rows"][0], "packed");
    let data: Value = serde_json::from_str(text(manifest, "data")).unwrap();
    let part = &data["parts"][0];
    let key = scene.as_written(part["key"].as_str().unwrap());
    let written = base_bucket(&scene.stack.aws.endpoint_url).get(&key).await.unwrap().unwrap();
    let hash = part["hash"].as_str().unwrap();
    assert_eq!(hash, hex::encode(hash_of(&written)));
    assert_eq!(parts(&written), parts(&golden), "{key}");
    let mut with_golden_hash = manifest.clone();
    with_golden_hash["data"] = json!({"S": text(manifest, "data").replace(hash, &hex::encode(hash_of(&golden)))});
    with_golden_hash
}

/// Returns the layout and the length of packed columns, and the columns.
fn parts(packed: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (head, compressed) = packed.split_at(5);
    let columns = zstd::bulk::decompress(compressed, MAX_COLUMNS_BYTES).unwrap();
    assert_eq!(u32::from_le_bytes(head[1..].try_into().unwrap()) as usize, columns.len());
    (head.to_vec(), columns)
}
