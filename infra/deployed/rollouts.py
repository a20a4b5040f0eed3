"""Gradual deployments of new versions of one function, while a client makes requests."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from samcli.lib.utils.hash import dir_checksum

import cloud
from deployment import SERVICE, Deployment
from steps import ROOT, Failed

FUNCTION = "marketplaces"
PROGRAM = ROOT / "target" / "lambda" / FUNCTION / "bootstrap"
BROKEN = b"#!/bin/sh\nexit 1\n"
SHIFTED = "10% of the requests"


def deploy_good_version(deployment: Deployment) -> None:
    """The hook accepts the new version. It gets a tenth of the requests for a while, then all.

    Something else has taken the place of its package.
    """
    with replaced(PROGRAM.read_bytes() + b"\n"), deployment.client().steady():
        take_place(deployment)
        told = log_of(lambda: deployment.deploy("--service-only"))
    assert_told(told, [r"the hook reported Succeeded", SHIFTED, r"had .*", "100% of the requests"])
    shares = re.search(r"had (\d+) of (\d+)", told[2])
    new, total = map(int, shares.groups())
    if not 0 < new <= total / 5:
        raise Failed(f"the new version had {new} of {total} requests instead of a tenth")


def take_place(deployment: Deployment) -> None:
    """Puts something else where sam is going to put the package, as another stack's deployment might."""
    client = deployment.aws("s3")
    names = (bucket["Name"] for bucket in client.list_buckets()["Buckets"])
    bucket = next(name for name in names if name.startswith("aws-sam-cli-managed-default-"))
    client.put_object(Bucket=bucket, Key=f"{SERVICE}/{dir_checksum(str(PROGRAM.parent))}", Body=b"no package")


def refuse_broken_version(deployment: Deployment) -> None:
    """The hook refuses a version that ends before it takes a request. No request goes to it."""
    with replaced(BROKEN), deployment.client().steady():
        told = log_of(deployment.assert_deploy_fails)
    assert_told(told, ["the hook reported Failed", "failed, .*"])
    deployment.assert_data_kept()


def take_back_alarming_version(deployment: Deployment) -> None:
    """A version that the hook accepts is taken back when an alarm goes off, and has had a tenth of the requests.

    The deployment also removes what the failed one before it has left.
    """
    left = left_versions(deployment)
    with replaced(PROGRAM.read_bytes() + b"\n\n"), deployment.client().steady():
        with alarm_once_shifted(deployment) as alarm:
            told = log_of(deployment.assert_deploy_fails)
    assert_told(told, ["the hook reported Succeeded", SHIFTED, f"failed, alarm {alarm} went off"])
    if not left or left & left_versions(deployment):
        raise Failed(f"the failed deployment before left the versions {left}, and they are still there")
    deployment.assert_data_kept()


def left_versions(deployment: Deployment) -> set[int]:
    """Returns the versions that are newer than the one with the requests. Lambda would not publish the same again."""
    client, name = deployment.aws("lambda"), f"{SERVICE}-{FUNCTION}"
    found = [version["Version"] for version in client.list_versions_by_function(FunctionName=name)["Versions"]]
    live = int(client.get_alias(FunctionName=name, Name="live")["FunctionVersion"])
    return {int(version) for version in found if version.isdigit() and int(version) > live}


@contextmanager
def replaced(program: bytes) -> Iterator[None]:
    """Puts another program in the function's place until the block ends."""
    built = PROGRAM.read_bytes()
    PROGRAM.write_bytes(program)
    try:
        yield
    finally:
        PROGRAM.write_bytes(built)


@contextmanager
def alarm_once_shifted(deployment: Deployment) -> Iterator[str]:
    """Sets off an alarm as soon as the new version gets requests. Yields its name."""
    alarms, alarm = deployment.aws("cloudwatch"), f"{SERVICE}-rollback-answers"
    over, begun = threading.Event(), cloud.log_size()

    def set_state(state: str) -> None:
        alarms.set_alarm_state(AlarmName=alarm, StateValue=state, StateReason="rehearsal")

    def watch() -> None:
        while not over.wait(0.1):
            if SHIFTED in cloud.log_since(begun):
                # Again and again, because ministack may evaluate the alarm in between.
                set_state("ALARM")

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield alarm
    finally:
        over.set()
        thread.join()
        set_state("OK")


def log_of(act) -> list[str]:
    """Does something. Returns what CodeDeploy's part in the emulator logged meanwhile, without times."""
    begun = cloud.log_size()
    act()
    return re.findall(r"INFO \[codedeploy\] (.*)", cloud.log_since(begun))


def assert_told(told: list[str], expected: list[str]) -> None:
    alias = rf"{SERVICE}-{FUNCTION}:live from version \d+ to \d+: "
    patterns = [alias + line for line in expected]
    if len(told) != len(patterns) or not all(map(re.fullmatch, patterns, told)):
        raise Failed(f"expected of CodeDeploy: {patterns}, got {told}")
