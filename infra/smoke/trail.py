"""Compares what the roles of a deployment may do with what they did, by CloudTrail's event history.

The history needs no trail. It has the calls that manage resources, but not those that read or write data.
"""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from releases import THROTTLES
from report import Report
from stack import Stack, is_aws

# Seconds until the history has an event: about five minutes, and no more than fifteen (AWS's documentation).
DELAY = 900 if is_aws() else 0
# Seconds between two pages. AWS allows two a second. In a busy account there are too many to read all.
PAUSE = 0.6 if is_aws() else 0
MOST_PAGES = 1000
# IAM tells its events here, wherever its resources are used.
GLOBAL = "us-east-1"
REFUSED = re.compile("AccessDenied|Unauthorized|NotAuthorized|AuthorizationError|Forbidden", re.IGNORECASE)
SENTENCE = re.compile(r"not authorized to perform:? (\w+:\w+)(?: on resource:? (\S+))?")
# What `rights.widen` adds.
ADMINISTRATOR = "AdministratorAccess"
# Actions whose use leaves no event in the history.
UNSEEN = (
    "apigateway:*Certificate*",
    "dynamodb:*Item",
    "dynamodb:Query",
    "iam:PassRole",
    "lambda:InvokeFunction",
    "logs:*LogDeliver*",
    "logs:PutLogEvents",
    "s3:GetObject*",
    "s3:PutObject",
    "sqs:*Message",
    "xray:*",
)
# What a line tries that is written after the removal. The boundary is there to refuse it.
LATE = "logs:CreateLogGroup"
VERBS = {"Create": "POST", "Import": "POST", "Reimport": "PUT", "Tag": "PUT", "Update": "PATCH", "Get": "GET"}
VERBS |= {"Delete": "DELETE", "Untag": "DELETE"}
# Settings of a bucket whose actions lack the word Bucket.
SETTINGS = "Encryption|Lifecycle|Replication|Accelerate|Analytics|Inventory|Metrics|IntelligentTiering"
OTHER = {"s3:HeadBucket": "s3:ListBucket", "s3:DeleteBucketTagging": "s3:PutBucketTagging"}


@dataclass
class Role:
    """What one role, or several of a kind, may do and did."""

    granted: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    refused: Counter = field(default_factory=Counter)
    throttled: Counter = field(default_factory=Counter)

    def may(self, action: str) -> bool:
        return any(matches(action, pattern) for pattern in self.granted)

    def unused(self) -> set[str]:
        return {one for one in self.granted if not any(matches(action, one) for action in self.used)}


def roles(stack: Stack) -> dict[str, Role]:
    """Returns the roles by their names. All functions share one, because a permission often is for several."""
    found = {stack.execution: Role(), f"pipeline-{stack.name}-codedeploy": Role()} if stack.role else {}
    functions, iam = Role(), stack.client("iam")
    if stack.status(stack.name):
        pages = stack.stacks.get_paginator("list_stack_resources").paginate(StackName=stack.name)
        resources = (resource for page in pages for resource in page["StackResourceSummaries"])
        made = (one["PhysicalResourceId"] for one in resources if one["ResourceType"] == "AWS::IAM::Role")
        found |= dict.fromkeys(made, functions)
    for name, role in found.items():
        for document in documents(iam, name):
            statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
            for actions in (one.get("Action", []) for one in statements if one["Effect"] == "Allow"):
                role.granted.update([actions] if isinstance(actions, str) else actions)
    return found


def documents(iam, role: str) -> Iterator[dict]:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        yield iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    for one in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        if one["PolicyName"] != ADMINISTRATOR:
            version = iam.get_policy(PolicyArn=one["PolicyArn"])["Policy"]["DefaultVersionId"]
            yield iam.get_policy_version(PolicyArn=one["PolicyArn"], VersionId=version)["PolicyVersion"]["Document"]


def compare(stack: Stack, report: Report, known: dict[str, Role]) -> None:
    """Reports what the roles used and did not have, and what they had and did not use."""
    print(f"   waiting {DELAY / 60:.0f} minutes for the last events; Ctrl-C skips this", flush=True)
    time.sleep(DELAY)
    events = Counter()
    for event in history(stack, report):
        if (name := issuer(event)) in known:
            events[name] += 1
            take(known[name], event)
    kinds = defaultdict(list)
    for name, role in known.items():
        kinds[id(role)].append(name)
    for names in kinds.values():
        seen = sum(events[name] for name in names)
        tell(report, names[0] if len(names) == 1 else "functions", known[names[0]], seen)


def tell(report: Report, kind: str, role: Role, seen: int) -> None:
    report.add(f"{kind}: events", seen or "none found")
    if not seen:
        return
    unseen = {one for one in role.unused() if any(matches(one, pattern) for pattern in UNSEEN)}
    report.add(f"{kind}: used but not granted", counted(role.refused))
    report.add(f"{kind}: granted but not used", listed(role.unused() - unseen))
    report.add(f"{kind}: granted, and no event would show its use", listed(unseen))
    report.add(f"{kind}: used, and mapped to nothing granted", listed(one for one in role.used if not role.may(one)))
    report.add(f"{kind}: throttled", counted(role.throttled))
    report.fail(*(f"{kind} may not {one}" for one in sorted(role.refused) if not one.startswith(LATE)))


def history(stack: Stack, report: Report) -> Iterator[dict]:
    """Yields the account's events since the run began, the newest first."""
    for region in {stack.session.region_name, GLOBAL}:
        client = stack.session.client("cloudtrail", region_name=region)
        for number, page in enumerate(client.get_paginator("lookup_events").paginate(StartTime=stack.begun), 1):
            yield from (json.loads(event["CloudTrailEvent"]) for event in page["Events"])
            if number == MOST_PAGES:
                report.add(f"events of {region}", f"only the newest {number} pages were read")
                break
            time.sleep(PAUSE)


def issuer(event: dict) -> str | None:
    """Returns the name of the role that made the call, if one did."""
    for member in ("userIdentity", "sessionContext", "sessionIssuer"):
        event = event.get(member) or {}
    return event.get("userName")


def take(role: Role, event: dict) -> None:
    """Adds one event to what a role did."""
    action, error = action_of(event["eventSource"], event["eventName"]), event.get("errorCode", "")
    if REFUSED.search(error):
        said = SENTENCE.search(event.get("errorMessage") or "")
        role.refused[" on ".join(filter(None, said.groups())) if said else f"{action} ({error})"] += 1
    else:
        role.used.add(action)
        role.throttled[action] += bool(THROTTLES.search(error))


def action_of(source: str, name: str) -> str:
    """Returns the IAM action of an event. Lambda's names end with the date of an API's version."""
    service = source.removesuffix(".amazonaws.com").replace("monitoring", "cloudwatch")
    name = re.sub(r"20\d{6}(v\d)?$", "", name)
    if service == "apigateway":
        verb = re.match("[A-Z][a-z]+", name)
        name = VERBS.get(verb[0] if verb else "", name)
    elif service == "budgets":
        name = "ViewBudget" if name.startswith("Describe") else "ModifyBudget"
    elif service == "s3" and (setting := re.match(rf"(Get|Put|Delete)(?:Bucket)?({SETTINGS})", name)):
        name = f"{setting[1].replace('Delete', 'Put')}{setting[2]}Configuration"
    return OTHER.get(f"{service}:{name}", f"{service}:{name}")


def matches(action: str, pattern: str) -> bool:
    return fnmatchcase(action.lower(), pattern.lower())


def counted(found: Counter) -> str:
    return listed(f"{count} × {one}" for one, count in (+found).items())


def listed(found: Iterable[str]) -> str:
    return ", ".join(sorted(found)) or "none"
