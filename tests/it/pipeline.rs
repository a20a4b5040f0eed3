//! Compares the workflows of the delivery pipeline with the script that they call.

use std::collections::BTreeSet;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn workflows_take_every_step_of_the_script_and_no_other() {
    let offered: BTreeSet<String> = read("infra/pipeline/run")
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" ;;")?.split_once(") "))
        .map(|(step, _)| step.to_owned())
        .filter(|step| step != "*")
        .collect();
    assert!(offered.contains("deploy"), "{offered:?}");
    assert_eq!(workflows().iter().flat_map(|text| steps(text)).collect::<BTreeSet<_>>(), offered);
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let workflows = workflows();
    let lines = workflows.iter().flat_map(|text| text.lines());
    let used: Vec<&str> =
        lines.filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")).collect();
    assert!(!used.is_empty());
    for action in used {
        let pin = action.split_once('@').and_then(|(_, rest)| rest.split(' ').next());
        let pinned = pin.is_some_and(|pin| pin.len() == 40 && pin.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(pinned || action.starts_with("./.github/workflows/"), "{action}");
    }
}

/// Credentials come from the job's own token. A key that is stored could leak.
#[test]
fn no_workflow_uses_a_stored_secret() {
    for text in workflows() {
        assert!(!text.contains("secrets."), "{text}");
    }
}

/// Without an address of its own, `smoke` asks the gateway, which refuses what does not come through the edge.
#[test]
fn a_stage_is_deployed_to_its_own_region_and_asked_at_its_own_address() {
    let stage = read(".github/workflows/stage.yml");
    for (variable, reader) in
        [("AWS_REGION", "infra/pipeline/run"), ("MARKETPLACE_BASE_URL", "infra/pipeline/answers.py")]
    {
        assert!(stage.contains(&format!("{variable}: ${{{{ vars.")), "{variable}");
        assert!(read(reader).contains(variable), "{reader}");
    }
    assert!(read("infra/pipeline/run").contains("infra/deploy/run --stack-name \"$STACK\" --region \"$AWS_REGION\""));
}

/// Returns the steps that a text calls the script with.
fn steps(text: &str) -> BTreeSet<String> {
    let calls = text.split("infra/pipeline/run ").skip(1);
    calls.map(|call| call.chars().take_while(|each| each.is_ascii_lowercase() || *each == '-').collect()).collect()
}

fn workflows() -> Vec<String> {
    let folder = std::fs::read_dir(Path::new(ROOT).join(".github/workflows")).unwrap();
    folder.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}
