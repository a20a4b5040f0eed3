"""Compares a stack with its templates: finds what somebody changed by hand.

Looks at the stacks of the service, of its data and of its edge, and at those nested in them. Exit code: 0 if nothing
differs, 1 if something does, 2 if AWS could not compare a stack.

usage: drift.py STACK
"""

import json
import sys
import time
from collections.abc import Iterator

import boto3
from botocore.exceptions import ClientError

# CloudFront's filters and certificates are in this region, wherever the service is.
EDGE_REGION = "us-east-1"
POLL_SECONDS = 5
# AWS says "several minutes" for a stack.
POLLS = 240


def main() -> None:
    [name] = sys.argv[1:]
    here, edge = boto3.client("cloudformation"), boto3.client("cloudformation", region_name=EDGE_REGION)
    wanted = [(here, name), (here, f"{name}-data"), (edge, f"{name}-edge")]
    # A small service has no edge. Without the first stack there is nothing to compare.
    present = [one for one in wanted if exists(*one)]
    if wanted[0] not in present:
        sys.exit(f"drift: there is no stack {name}")
    drifted = failed = 0
    for client, stack in [each for one in present for each in with_nested(*one)]:
        state = detected(client, stack)
        print(f"{state:16} {short(stack)}")
        failed += state not in ("IN_SYNC", "DRIFTED")
        for line in differences(client, stack) if state == "DRIFTED" else ():
            print(line)
            drifted += not line.startswith("    ")
    print(f"\n{drifted} resources differ from their templates")
    sys.exit(2 if failed else 1 if drifted else 0)


def exists(client, stack: str) -> bool:
    try:
        client.describe_stacks(StackName=stack)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            return False
        raise
    return True


def with_nested(client, stack: str) -> Iterator[tuple]:
    """Returns the stack and those nested in it. AWS compares each stack alone."""
    yield client, stack
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


main()
