"""Runs cfn-guard on templates. Fails, with a line for each, if a resource breaks a rule and is not in EXCEPTIONS, or
if an exception is no longer needed.

usage: guard.py CFN_GUARD TEMPLATE[,TEMPLATE...] EXCEPTIONS RULES...
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

FAILED = 19


def failures(guard: str, templates: list[str], rules: list[str]) -> dict[str, tuple[str, set[str]]]:
    """Returns, for each broken rule, its message and the resources that break it."""
    output = ["--structured", "--output-format", "json", "--show-summary", "none"]
    command = [guard, "validate", "--data", *templates, "--rules", *rules, *output]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, FAILED):
        sys.exit(f"cfn-guard ended with {run.returncode}: {run.stderr}")
    found = {}
    for report in json.loads(run.stdout):
        passed, absent = len(report["compliant"]), len(report["not_applicable"])
        print(f"{report['name']}: {passed} rules passed, {absent} did not apply")
        add(found, report["not_compliant"])
    return found


def add(found: dict[str, tuple[str, set[str]]], broken: list) -> None:
    for failure in broken:
        text = json.dumps(failure["Rule"])
        message = re.search(r'"custom_message": "(?:\\n|\s)*([^"\\]+)', text)
        resources = set(re.findall(r'"path": "/Resources/([^/"]+)', text))
        _, before = found.get(failure["Rule"]["name"], ("", set()))
        found[failure["Rule"]["name"]] = (message[1] if message else "", resources | before)


def main() -> None:
    guard, templates, exceptions, *rules = sys.argv[1:]
    excused = yaml.safe_load(Path(exceptions).read_text())
    found = failures(guard, templates.split(","), rules)
    wrong = []
    for rule, (message, resources) in found.items():
        allowed = resources if excused.get(rule) == "all" else set(excused.get(rule, []))
        wrong += [f"{resource}: {rule}: {message}" for resource in sorted(resources - allowed)]
        wrong += [f"{exceptions}: {resource} no longer breaks {rule}" for resource in sorted(allowed - resources)]
    wrong += [f"{exceptions}: nothing breaks {rule} any more" for rule in sorted(excused.keys() - found.keys())]
    if wrong:
        sys.exit("\n".join(wrong))


main()
