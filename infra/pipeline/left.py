"""Removes the versions of functions that a failed deployment of the stack in the first argument has left.

SAM retains versions, so that requests that reach the old one for a moment after its alias has moved are answered. That
retains those of a failed deployment as well, and Lambda does not publish a version that equals the one before it. So the
next deployment would fail at each function that it does not change.
"""

import sys
from collections.abc import Iterator

import boto3
from botocore.exceptions import BotoCoreError, ClientError

ALIAS = "live"
# The state of a stack from the end of a failed deployment to the next one.
WENT_BACK = "UPDATE_ROLLBACK_COMPLETE"


def main(stack: str) -> None:
    if status(stack) != WENT_BACK:
        return
    client = boto3.client("lambda")
    for function in functions(stack):
        for version in newer(client, function):
            # Without a qualifier this would delete the function.
            client.delete_function(FunctionName=function, Qualifier=str(version))
            print(f"removed {function}:{version}, which the deployment before has left")


def status(stack: str) -> str | None:
    try:
        return boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        return None


def functions(stack: str) -> Iterator[str]:
    pages = boto3.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    for resource in (one for page in pages for one in page["StackResourceSummaries"]):
        if resource["ResourceType"] == "AWS::Lambda::Function":
            yield resource["PhysicalResourceId"]


def newer(client, function: str) -> list[int]:
    """Returns the versions after the one that the alias leads to: all of them, if the stack went back to before it."""
    try:
        live = int(client.get_alias(FunctionName=function, Name=ALIAS)["FunctionVersion"])
    except client.exceptions.ResourceNotFoundException:
        live = 0
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    found = [one["Version"] for page in pages for one in page["Versions"]]
    return [number for number in map(int, filter(str.isdigit, found)) if number > live]


try:
    main(sys.argv[1])
except (BotoCoreError, ClientError) as error:
    sys.exit(f"left: AWS refused: {error}")
