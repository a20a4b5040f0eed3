"""Runs cfn-guard on templates. Fails, with a line for each, if a resource breaks a rule and is not in EXCEPTIONS, or
if an exception is no longer needed.

usage: guard.py CFN_GUARD EXCEPTIONS RULES,... TEMPLATE...
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

FAILED = 19


def failures(guard: str, template: str, rules: list[str]) -> dict[str, tuple[str, set[str]]]:
    """Returns, for each broken rule, its message and the resources that break it."""
    output = ["--structured", "--output-format", "json", "--show-summary", "none"]
    command = [guard, "validate", "--data", template, "--rules", *rules, *output]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, FAILED):
        sys.exit(f"cfn-guard ended with {run.returncode}: {run.stderr}")
    [report] = json.loads(run.stdout)
    passed, skipped = len(report["compliant"]), len(report["not_applicable"])
    print(f"{template}: {passed} rules passed, {skipped} did not apply")
    found = {}
    for failure in report["not_compliant"]:
        text = json.dumps(failure["Rule"])
        message = re.search(r'"custom_message": "(?:\\n|\s)*([^"\\]+)', text)
        resources = set(re.findall(r'"path": "/Resources/([^/"]+)', text))
        found[failure["Rule"]["name"]] = (message[1] if message else "", resources)
    return found


def main() -> None:
    guard, exceptions, rules, *templates = sys.argv[1:]
    excused = yaml.safe_load(Path(exceptions).read_text())
    found = {}
    for template in templates:
        for rule, (message, resources) in failures(guard, template, rules.split(",")).items():
            found[rule] = (message, found.get(rule, ("", set()))[1] | resources)
    wrong = []
    for rule, (message, resources) in found.items():
        allowed = resources if excused.get(rule) == "all" else set(excused.get(rule, []))
        wrong += [f"{resource}: {rule}: {message}" for resource in sorted(resources - allowed)]
        wrong += [f"{exceptions}: {resource} no longer breaks {rule}" for resource in sorted(allowed - resources)]
    wrong += [f"{exceptions}: nothing breaks {rule} any more" for rule in sorted(excused.keys() - found.keys())]
    if wrong:
        sys.exit("\n".join(wrong))


main()
