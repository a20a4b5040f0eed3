"""New versions of functions that are deployed gradually, while a client makes requests."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from botocore.exceptions import ClientError

from client import get
from report import Report
from stack import HOME, PROGRAMS, Failed, Stack, events

# The function that gets a version that does not start.
FUNCTION = "marketplaces"
# What all answer with 200, whether or not there are data.
PATHS = (
    "/v1/public/marketplaces",
    "/v1/public/me",
    "/v1/public/catalog",
    "/v1/public/listings",
    "/v1/public/orders",
    "/v1/openapi.json",
)
# Seconds between two requests during a deployment.
PAUSE = 0.5
# What replaces a program. Each can be told from what was built.
BROKEN, MARK = b"#!/bin/sh\nexit 1\n", b"\n"
# Built programs that are replaced now. They survive an end of this program that no block sees.
SAVED = HOME / "programs"
# How AWS refuses calls that come too fast.
THROTTLES = re.compile("exceeded the request limit|rate exceeded|throttl|too ?many ?requests", re.IGNORECASE)


def change_all(stack: Stack, report: Report, key: str) -> None:
    """Deploys a new version of every function at once. No request may notice."""
    functions = [program.parent.name for program in PROGRAMS.glob("*/bootstrap")]
    since, begun = datetime.now(UTC), time.monotonic()
    with replaced(functions, lambda built: built + MARK), requests(stack, key, PATHS) as answers:
        try:
            stack.deploy("--service-only")
        except Failed as failure:
            report.fail(failure, *stack.reasons(stack.name, since))
        status = stack.settled(stack.name)
    report.add("functions changed", len(functions))
    report.add("from the deployment to its end, s", time.monotonic() - begun)
    report.add("the stack afterwards", status)
    report.add("calls that AWS throttled, in the stack's events", throttled(stack, since))
    report.add("what CodeDeploy said", deployments(stack, since))
    refuse_lost(report, answers)


def roll_back(stack: Stack, report: Report, key: str) -> None:
    """Deploys a version that ends in init. The stack must refuse it, and no request may notice."""
    since, begun = datetime.now(UTC), time.monotonic()
    with replaced([FUNCTION], lambda _: BROKEN), requests(stack, key, PATHS[:1]) as answers:
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
    report.add("what CodeDeploy said", deployments(stack, since))
    refuse_lost(report, answers)
    if status != "UPDATE_ROLLBACK_COMPLETE":
        raise Failed(f"{stack.name} is {status}")


def refuse_lost(report: Report, answers: Counter) -> None:
    lost = {status: count for status, count in answers.items() if status != 200}
    report.add("requests meanwhile that were answered with 200", answers[200])
    report.add("other requests meanwhile", sum(lost.values()))
    if lost or not answers[200]:
        raise Failed(f"requests meanwhile were answered with {lost or 'nothing'}")


def mend_programs() -> None:
    """Puts built programs back, if a run was cut off before it did. One that was built since then stays."""
    for saved in SAVED.glob("*"):
        program, built = path(saved.name), saved.read_bytes()
        if program.exists() and program.read_bytes() in (BROKEN, built + MARK):
            program.write_bytes(built)
        saved.unlink()


@contextmanager
def replaced(functions: Iterable[str], other: Callable[[bytes], bytes]) -> Iterator[None]:
    """Puts other programs in the place of these functions' until the block ends."""
    SAVED.mkdir(parents=True, exist_ok=True)
    try:
        for function in functions:
            built = path(function).read_bytes()
            (SAVED / function).write_bytes(built)
            path(function).write_bytes(other(built))
        yield
    finally:
        mend_programs()


def path(function: str) -> Path:
    return PROGRAMS / function / "bootstrap"


@contextmanager
def requests(stack: Stack, key: str, paths: Iterable[str]) -> Iterator[Counter]:
    """Makes requests to one path after the other until the block ends. Yields the number of answers of each status."""
    base_url, answers, over, asked = stack.output("BaseUrl"), Counter(), threading.Event(), cycle(paths)

    def ask() -> None:
        while not over.wait(PAUSE):
            answers[get(base_url, next(asked), key)[0]] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def heeded(stack: Stack) -> str:
    """Names the alarms that stop a deployment of the function that gets broken versions. Emulators do not tell."""
    client, application = stack.client("codedeploy"), stack.resource("ServerlessDeploymentApplication")
    wanted = {"applicationName": application, "deploymentGroupName": stack.resource("MarketplacesFunctionDeploymentGroup")}
    try:
        alarms = client.get_deployment_group(**wanted)["deploymentGroupInfo"].get("alarmConfiguration", {})
    except ClientError as error:
        return f"unknown: {error.response['Error']['Code']}"
    return ", ".join(one["name"] for one in alarms.get("alarms", []) if alarms.get("enabled")) or "none"


def throttled(stack: Stack, since: datetime) -> str:
    """Names the resources with whose calls CloudFormation was too fast."""
    found = (event for event in events.events(stack.stacks, stack.name, since) if THROTTLES.search(event.get("ResourceStatusReason", "")))
    return ", ".join(sorted({event["LogicalResourceId"] for event in found})) or "none"


def deployments(stack: Stack, since: datetime) -> str:
    """Returns the outcomes of CodeDeploy's deployments of this stack. Emulators do not list them."""
    client, found = stack.client("codedeploy"), Counter()
    application = stack.resource("ServerlessDeploymentApplication")
    try:
        for group in client.list_deployment_groups(applicationName=application)["deploymentGroups"]:
            wanted = {"applicationName": application, "deploymentGroupName": group}
            listed = client.list_deployments(**wanted, createTimeRange={"start": since})
            for deployment in listed["deployments"]:
                told = client.get_deployment(deploymentId=deployment)["deploymentInfo"]
                found[f"{told['status']} {told.get('errorInformation', {}).get('code', '')}".strip()] += 1
    except ClientError as error:
        return f"unknown: {error.response['Error']['Code']}"
    return ", ".join(f"{count} × {what}" for what, count in found.most_common()) or "nothing"
