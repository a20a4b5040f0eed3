"""Fails if a deployment moves more than five aliases at once.

Lambda takes 15 requests a second of an account for everything but invocations, and CodeDeploy makes several for each
alias. Others' deployments failed with "exceeded the request limit for AWSLambda"
(https://github.com/davidgf/serverless-plugin-canary-deployments/issues/159).

An alias waits for what its `UpdatePolicy` names. So its wave comes after those of the aliases that stand there.

usage: waves.py EXPANDED_TEMPLATE
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

MOST_AT_ONCE = 5


def main() -> None:
    resources = json.loads(Path(sys.argv[1]).read_text())["Resources"]
    aliases = {name: resource for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Alias"}
    before = {name: referred(alias["UpdatePolicy"]) & aliases.keys() for name, alias in aliases.items()}
    waves = defaultdict(set)
    for name in aliases:
        waves[wave(name, before)].add(name)
    for number, members in sorted(waves.items()):
        if len(members) > MOST_AT_ONCE:
            sys.exit(f"{len(members)} aliases move at once, and {MOST_AT_ONCE} may: {', '.join(sorted(members))}")
        for name in members:
            # Without one of them, it would not wait for that one.
            if missing := waves.get(number - 1, set()) - before[name]:
                sys.exit(f"{name} moves with {', '.join(sorted(missing))}, which belong to the wave before")
    print(f"{len(aliases)} aliases move in {len(waves)} waves")


def wave(name: str, before: dict[str, set[str]]) -> int:
    return 1 + max((wave(one, before) for one in before[name]), default=0)


def referred(value: object) -> set[str]:
    """Returns the names of the resources that a part of a template refers to."""
    if isinstance(value, dict):
        own = {value["Ref"]} if "Ref" in value else set()
        return own.union(*map(referred, value.values()))
    return set().union(*map(referred, value)) if isinstance(value, list) else set()


main()
