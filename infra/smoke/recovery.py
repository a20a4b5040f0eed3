"""A broken version takes itself back, and a table goes back in time."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from botocore.exceptions import ClientError

from client import get
from report import Report
from stack import HOME, PROGRAMS, Failed, Stack, is_aws

FUNCTION, PATH = "marketplaces", "/v1/public/marketplaces"
PROGRAM = PROGRAMS / FUNCTION / "bootstrap"
BROKEN = b"#!/bin/sh\nexit 1\n"
# Survives an end of this program that no block sees.
SAVED = HOME / f"{FUNCTION}.bootstrap"
# Seconds between two requests during a roll-back.
PAUSE = 0.5
TABLE, TABLE_PATH = "accounts", "/v1/public/wallet/balance"
# DynamoDB restores to no moment later than about five minutes ago (AWS's documentation).
RESTORABLE = timedelta(minutes=6 if is_aws() else 1)


def roll_back(stack: Stack, report: Report, key: str) -> None:
    """Deploys a version that ends in init. The stack must refuse it, and no request may notice."""
    begun = time.monotonic()
    with broken(), requests(stack, key) as answers:
        try:
            stack.deploy("--service-only")
        except Failed:
            pass
        else:
            raise Failed("the stack took a version that does not start")
        # sam may end before the roll-back does.
        status = stack.settled(stack.name)
    report.add("from the deployment to the end of the roll-back, s", time.monotonic() - begun)
    report.add("the stack afterwards", status)
    report.add("requests meanwhile that were answered with 200", answers[200])
    lost = sum(answers.values()) - answers[200]
    report.add("other requests meanwhile", lost)
    report.add("what CodeDeploy said", deployments(stack))
    if status != "UPDATE_ROLLBACK_COMPLETE" or lost:
        raise Failed(f"{stack.name} is {status}, and {dict(answers)} were the answers")


def mend_program() -> None:
    """Puts the built function back, if a run was cut off before it did. One that was built since then stays."""
    if SAVED.exists():
        if PROGRAM.read_bytes() == BROKEN:
            PROGRAM.write_bytes(SAVED.read_bytes())
        SAVED.unlink()


@contextmanager
def broken() -> Iterator[None]:
    """Puts a program that ends at once in the function's place until the block ends."""
    HOME.mkdir(parents=True, exist_ok=True)
    SAVED.write_bytes(PROGRAM.read_bytes())
    try:
        PROGRAM.write_bytes(BROKEN)
        yield
    finally:
        mend_program()


@contextmanager
def requests(stack: Stack, key: str) -> Iterator[Counter]:
    """Makes requests to the function until the block ends. Yields the number of answers of each status."""
    base_url, answers, over = stack.output("BaseUrl"), Counter(), threading.Event()

    def ask() -> None:
        while not over.wait(PAUSE):
            answers[get(base_url, PATH, key)] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def deployments(stack: Stack) -> str:
    """Returns the outcomes of CodeDeploy's deployments of this stack. Emulators do not list them."""
    client, found = stack.client("codedeploy"), []
    application = stack.resource("ServerlessDeploymentApplication")
    try:
        for group in client.list_deployment_groups(applicationName=application)["deploymentGroups"]:
            listed = client.list_deployments(applicationName=application, deploymentGroupName=group)
            for deployment in listed["deployments"]:
                told = client.get_deployment(deploymentId=deployment)["deploymentInfo"]
                found.append(f"{told['status']} {told.get('errorInformation', {}).get('code', '')}".strip())
    except ClientError as error:
        return f"unknown: {error.response['Error']['Code']}"
    return ", ".join(sorted(found)) or "nothing"


def restore(stack: Stack, report: Report, key: str) -> None:
    """Takes a table back to a moment after the deployment."""
    made = stack.client("dynamodb").describe_table(TableName=f"{stack.name}-{TABLE}")["Table"]["CreationDateTime"]
    # One minute later it is surely restorable.
    moment = max(datetime.now(UTC) - RESTORABLE, made + timedelta(minutes=1)).astimezone(UTC)
    time.sleep(max(0.0, (moment + RESTORABLE - datetime.now(UTC)).total_seconds()))
    begun = time.monotonic()
    stack.marketctl("restore", TABLE, "--to", f"{moment:%Y-%m-%dT%H:%M:%SZ}")
    report.add("from the command to its end, s", time.monotonic() - begun)
    status = get(stack.output("BaseUrl"), TABLE_PATH, key)
    report.add("a request to `balance` afterwards", status)
    if status not in (200, 404):
        raise Failed(f"balance answered with {status}")
