"""Compares a stack with its templates: finds what somebody changed by hand.

Looks at the stacks of the service and of its data, and at those nested in them. Exit code: 0 if nothing differs, 1 if
something does, 2 if AWS could not compare a stack.

usage: drift.py STACK
"""

import json
import sys
import time
from collections.abc import Iterator

import boto3
from botocore.exceptions import BotoCoreError, ClientError

POLL_SECONDS = 5
# AWS says "several minutes" for a stack.
POLLS = 240


def main() -> None:
    [name] = sys.argv[1:]
    client = boto3.client("cloudformation")
    drifted = failed = 0
    for stack in [each for one in (name, f"{name}-data") for each in with_nested(client, one)]:
        state = detected(client, stack)
        print(f"{state:16} {short(stack)}")
        failed += state not in ("IN_SYNC", "DRIFTED")
        for line in differences(client, stack) if state == "DRIFTED" else ():
            print(line)
            drifted += not line.startswith("    ")
    print(f"\nresources that differ from their templates: {drifted}")
    sys.exit(2 if failed else 1 if drifted else 0)


def with_nested(client, stack: str) -> Iterator[str]:
    """Returns the stack and those nested in it. AWS compares each stack alone."""
    yield stack
    for page in client.get_paginator("list_stack_resources").paginate(StackName=stack):
        for resource in page["StackResourceSummaries"]:
            if resource["ResourceType"] == "AWS::CloudFormation::Stack" and "PhysicalResourceId" in resource:
                yield from with_nested(client, resource["PhysicalResourceId"])


def detected(client, stack: str) -> str:
    """Returns IN_SYNC or DRIFTED, or why the stack could not be compared."""
    detection = client.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]
    for _ in range(POLLS):
        found = client.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
        if found["DetectionStatus"] == "DETECTION_COMPLETE":
            return found["StackDriftStatus"]
        if found["DetectionStatus"] == "DETECTION_FAILED":
            return f"failed: {found.get('DetectionStatusReason', 'no reason given')}"
        time.sleep(POLL_SECONDS)
    return "failed: not compared in time"


def differences(client, stack: str) -> Iterator[str]:
    """Returns a line for each resource that differs, and an indented one for each of its properties that do."""
    asked = {"StackName": stack, "StackResourceDriftStatusFilters": ["MODIFIED", "DELETED"]}
    while True:
        found = client.describe_stack_resource_drifts(**asked)
        for drift in found["StackResourceDrifts"]:
            yield f"  {drift['LogicalResourceId']} ({drift['ResourceType']}) is {drift['StackResourceDriftStatus']}"
            for one in drift.get("PropertyDifferences", []):
                expected, actual = json.dumps(one["ExpectedValue"]), json.dumps(one["ActualValue"])
                yield f"    {one['PropertyPath']}: the template says {expected}, AWS has {actual}"
        if "NextToken" not in found:
            return
        asked["NextToken"] = found["NextToken"]


def short(stack: str) -> str:
    """Returns a stack's name without the rest of its ARN."""
    return stack.split("/")[1] if stack.startswith("arn:") else stack


try:
    main()
except (BotoCoreError, ClientError) as error:
    print(f"drift: AWS could not be asked: {error}", file=sys.stderr)
    sys.exit(2)
