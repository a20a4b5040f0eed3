//! The benchmark's comparison with another webhook server, with the example of an adapter in that server's place.

use serde_json::Value;
use tests::binary;
use tokio::process::Command;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/bench/peer/sender.py");

#[tokio::test(flavor = "multi_thread")]
async fn the_functions_and_another_server_take_turns_under_the_same_load() {
    let mut bench = Command::new(binary("bench"));
    bench.args(["webhooks", "--json", "--events", "90", "--endpoints", "4", "--stores", "2", "--pairs", "2"]);
    bench.args(["--peer", &format!("exec python3 '{EXAMPLE}'")]);
    let output = bench.kill_on_drop(true).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stores"], 2);
    assert_eq!(report["endpoints"], 4);
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        assert_eq!(pair["functions"]["events"], 90);
        assert_eq!(pair["peer"]["events"], 90);
        assert_eq!(pair["peer"]["arrived"], 90);
        assert!(pair["functions"]["bill"]["calls"]["SendMessageBatch"].as_u64() > Some(0), "{pair}");
    }
}
