"""What has happened to a stack, and to those nested in it."""

from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile


def events(client, stack: str, since: datetime) -> Iterator[dict]:
    """Yields the events of a stack and of those nested in it, the newest first."""
    pages = client.get_paginator("describe_stack_events").paginate(StackName=stack)
    found = (event for page in pages for event in page["StackEvents"])
    recent = list(takewhile(lambda event: event["Timestamp"] >= since, found))
    yield from recent
    nested = (event for event in recent if event["ResourceType"] == "AWS::CloudFormation::Stack")
    inner = {event.get("PhysicalResourceId", "") for event in nested}
    # A stack's events name the stack itself, too, and at first a nested one has no id.
    for one in inner - {"", *(event["StackId"] for event in recent)}:
        yield from events(client, one, since)


def reasons(client, stack: str, since: datetime) -> list[str]:
    """Returns why resources of a stack have failed, and not because others had."""
    failed = (event for event in events(client, stack, since) if event["ResourceStatus"].endswith("_FAILED"))
    told = {f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason')}" for event in failed}
    return sorted(reason for reason in told if "cancelled" not in reason)
