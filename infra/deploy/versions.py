"""Removes the versions of functions that a failed deployment has left.

SAM retains versions, and so requests that reach the old one for a moment after the alias has moved are answered. That
retains those of a failed deployment as well, and Lambda does not publish a version that equals the one before it. So the
next deployment would fail at each function that it does not change.
"""

from collections.abc import Iterator

import boto3
from botocore.exceptions import ClientError

ALIAS = "live"
# The state of a stack from the end of a failed deployment to the next one.
WENT_BACK = "UPDATE_ROLLBACK_COMPLETE"


def remove_left(stack: str) -> None:
    """Removes the versions of a stack's functions that are newer than those with the traffic."""
    client = boto3.client("lambda")
    for function in functions(stack):
        try:
            for version in newer(client, function):
                # Without a qualifier this would delete the function.
                client.delete_function(FunctionName=function, Qualifier=str(version))
                print(f"removed {function}:{version}, which the deployment before has left")
        except ClientError as error:
            print(f"versions of {function} that the deployment before has left may be in the way: {error}")


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
