"""Runs cfn-guard on a template and prints a line for each resource that fails a rule, but for those in EXCEPTIONS.

usage: guard.py CFN_GUARD TEMPLATE EXCEPTIONS RULES...
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

FAILED = 19


def failures(guard: str, template: str, rules: list[str]) -> dict[str, tuple[str, set[str]]]:
    """By rule: what it asks for, and the resources that do not have it."""
    output = ["--structured", "--output-format", "json", "--show-summary", "none"]
    command = [guard, "validate", "--data", template, "--rules", *rules, *output]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, FAILED):
        sys.exit(f"cfn-guard ended with {run.returncode}: {run.stderr}")
    [report] = json.loads(run.stdout)
    print(f"{len(report['compliant'])} rules hold, {len(report['not_applicable'])} are about other things")
    found = {}
    for failure in report["not_compliant"]:
        text = json.dumps(failure["Rule"])
        message = re.search(r'"custom_message": "(?:\\n|\s)*([^"\\]+)', text)
        resources = set(re.findall(r'"path": "/Resources/([^/"]+)', text))
        found[failure["Rule"]["name"]] = (message[1] if message else "", resources)
    return found


def main() -> None:
    guard, template, exceptions, *rules = sys.argv[1:]
    excused = yaml.safe_load(Path(exceptions).read_text())
    found = failures(guard, template, rules)
    wrong = []
    for rule, (message, resources) in found.items():
        allowed = resources if excused.get(rule) == "all" else set(excused.get(rule, []))
        wrong += [f"{resource}: {rule}: {message}" for resource in sorted(resources - allowed)]
        wrong += [f"{exceptions}: {rule} holds for {resource}" for resource in sorted(allowed - resources)]
    wrong += [f"{exceptions}: {rule} holds" for rule in sorted(excused.keys() - found.keys())]
    if wrong:
        sys.exit("\n".join(wrong))


main()
