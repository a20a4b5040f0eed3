"""A table goes back in time."""

import time
from datetime import UTC, datetime, timedelta

from client import get
from report import Report
from stack import Failed, Stack, is_aws

TABLE, TABLE_PATH = "accounts", "/v1/public/wallet/balance"
# DynamoDB restores to no moment later than about five minutes ago (AWS's documentation).
RESTORABLE = timedelta(minutes=6 if is_aws() else 1)


def restore(stack: Stack, report: Report, key: str) -> None:
    """Takes a table back to a moment after the deployment."""
    made = stack.client("dynamodb").describe_table(TableName=f"{stack.name}-{TABLE}")["Table"]["CreationDateTime"]
    # One minute later it is surely restorable.
    moment = max(datetime.now(UTC) - RESTORABLE, made + timedelta(minutes=1)).astimezone(UTC)
    time.sleep(max(0.0, (moment + RESTORABLE - datetime.now(UTC)).total_seconds()))
    begun = time.monotonic()
    stack.marketctl("restore", TABLE, "--to", f"{moment:%Y-%m-%dT%H:%M:%SZ}")
    report.add("from the command to its end, s", time.monotonic() - begun)
    status, _ = get(stack.output("BaseUrl"), TABLE_PATH, key)
    report.add("a request to `balance` afterwards", status)
    if status not in (200, 404):
        raise Failed(f"balance answered with {status}")
