"""Gradual deployments of new versions of two functions, while a client makes requests to one of them."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from samcli.lib.utils.hash import dir_checksum

import cloud
from deployment import SERVICE, Deployment
from steps import ROOT, Failed

# Of the first wave, and of the last.
FUNCTION, LATE = "marketplaces", "compact"
PROGRAMS = ROOT / "target" / "lambda"
BROKEN = b"#!/bin/sh\nexit 1\n"
SHIFTED = "10% of the requests"
# What CodeDeploy's part in the emulator says of a version that gets all requests.
MOVED = ["the hook reported Succeeded", SHIFTED, r"had .*", "100% of the requests"]


def refuse_broken_version(deployment: Deployment) -> None:
    """The hook refuses a version that ends before it takes a request. No request goes to it."""
    with replaced(FUNCTION, BROKEN), deployment.client().steady():
        told = log_of(deployment.assert_deploy_fails)
    assert_told(told, of(FUNCTION, ["the hook reported Failed", "failed, .*"]))
    deployment.assert_data_kept()


def take_back_alarming_version(deployment: Deployment) -> None:
    """An alarm goes off while the last wave has a tenth of the requests, and still fires when the first is taken back.

    So the stack is stuck, and the deployment goes on with that once the alarm is quiet. It also removes what the failed
    one before it has left.
    """
    left = left_versions(deployment)
    with changed(FUNCTION, b"\n"), changed(LATE, b"\n"), deployment.client().steady():
        with alarm_once_shifted(deployment) as alarm:
            told = log_of(deployment.assert_deploy_fails)
    refused = f"failed, alarm {alarm} went off"
    alarming = ["the hook reported Succeeded", SHIFTED, refused]
    assert_told(told, of(FUNCTION, MOVED) + of(LATE, alarming) + of(FUNCTION, [refused]) + of(FUNCTION, MOVED))
    if not left or left & versions(deployment):
        raise Failed(f"the failed deployment before left the versions {left}, and they are still there")


def deploy_good_version(deployment: Deployment) -> None:
    """Each new version gets a tenth of the requests for a while, then all, wave by wave.

    Something else has taken the place of a package.
    """
    with changed(FUNCTION, b"\n\n"), changed(LATE, b"\n\n"), deployment.client().steady():
        take_place(deployment)
        told = log_of(lambda: deployment.deploy("--service-only"))
    assert_told(told, of(FUNCTION, MOVED) + of(LATE, MOVED))
    new, total = map(int, re.search(r"had (\d+) of (\d+)", told[2]).groups())
    if not 0 < new <= total / 5:
        raise Failed(f"the new version had {new} of {total} requests instead of a tenth")
    deployment.assert_data_kept()


def take_place(deployment: Deployment) -> None:
    """Puts something else where sam is going to put the package, as another stack's deployment might."""
    client = deployment.aws("s3")
    names = (bucket["Name"] for bucket in client.list_buckets()["Buckets"])
    bucket = next(name for name in names if name.startswith("aws-sam-cli-managed-default-"))
    client.put_object(Bucket=bucket, Key=f"{SERVICE}/{dir_checksum(str(PROGRAMS / FUNCTION))}", Body=b"no package")


def left_versions(deployment: Deployment) -> set[int]:
    """Returns the versions that are newer than the one with the requests. Lambda would not publish the same again."""
    alias = deployment.aws("lambda").get_alias(FunctionName=f"{SERVICE}-{FUNCTION}", Name="live")
    return {version for version in versions(deployment) if version > int(alias["FunctionVersion"])}


def versions(deployment: Deployment) -> set[int]:
    listed = deployment.aws("lambda").list_versions_by_function(FunctionName=f"{SERVICE}-{FUNCTION}")["Versions"]
    return {int(one["Version"]) for one in listed if one["Version"].isdigit()}


def changed(function: str, more: bytes):
    """Makes a function's program another one that does the same, until the block ends."""
    return replaced(function, (PROGRAMS / function / "bootstrap").read_bytes() + more)


@contextmanager
def replaced(function: str, program: bytes) -> Iterator[None]:
    """Puts another program in a function's place until the block ends."""
    file = PROGRAMS / function / "bootstrap"
    built = file.read_bytes()
    file.write_bytes(program)
    try:
        yield
    finally:
        file.write_bytes(built)


@contextmanager
def alarm_once_shifted(deployment: Deployment) -> Iterator[str]:
    """Sets off an alarm as soon as the last wave gets requests, until it has stopped the roll-back. Yields its name."""
    alarms, alarm = deployment.aws("cloudwatch"), f"{SERVICE}-rollback-answers"
    over, begun = threading.Event(), cloud.log_size()

    def set_state(state: str) -> None:
        alarms.set_alarm_state(AlarmName=alarm, StateValue=state, StateReason="rehearsal")

    def watch() -> None:
        while not over.wait(0.1):
            log = cloud.log_since(begun)
            if re.search(f"{FUNCTION}:live .* {alarm} went off", log):
                set_state("OK")
                return
            if re.search(f"{LATE}:live .*{SHIFTED}", log):
                # Again and again, because ministack may evaluate the alarm in between.
                set_state("ALARM")

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield alarm
    finally:
        over.set()
        thread.join()


def log_of(act) -> list[str]:
    """Does something. Returns what CodeDeploy's part in the emulator logged meanwhile, without times."""
    begun = cloud.log_size()
    act()
    return re.findall(r"INFO \[codedeploy\] (.*)", cloud.log_since(begun))


def of(function: str, lines: list[str]) -> list[str]:
    return [rf"{SERVICE}-{function}:live from version \d+ to \d+: {line}" for line in lines]


def assert_told(told: list[str], patterns: list[str]) -> None:
    if len(told) != len(patterns) or not all(map(re.fullmatch, patterns, told)):
        raise Failed(f"expected of CodeDeploy: {patterns}, got {told}")
