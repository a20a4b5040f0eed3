"""Deployments of new versions, while a client makes requests to one of the functions that change."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import cloud
from deployment import SERVICE, Deployment
from steps import ROOT, Failed

# Of the first wave, and of the last.
FUNCTION, LATE = f"{SERVICE}-marketplaces", f"{SERVICE}-compact"
HOOK = f"CodeDeployHook_{SERVICE}-pretraffic"
PROGRAMS = ROOT / "target" / "lambda"
BROKEN = b"#!/bin/sh\nexit 1\n"
# An SNS topic that nobody subscribes to. With one, there are alarms.
TOPIC = "arn:aws:sns:us-east-1:000000000000:alarms"


def refuse_broken_version(deployment: Deployment) -> None:
    """The hook refuses a version that ends before it takes a request. No alias moves, and all is as before."""
    with replaced(FUNCTION, BROKEN), changed(LATE, b"\n"), deployment.client().steady():
        told = log_of(lambda: deployment.assert_deploy_fails("UPDATE_ROLLBACK_COMPLETE"))
    assert_told(told, [of(HOOK, "the hook reported Failed"), of(HOOK, "failed, the hook refused")])
    deployment.assert_data_kept()


def deploy_good_versions(deployment: Deployment) -> None:
    """The hook is asked once. Then the functions that changed follow, wave by wave.

    The one that was refused with another is the same as then, so Lambda has its version already.
    """
    if not (left := left_versions(deployment)):
        raise Failed("the failed deployment before has left no version")
    deployment.clear_left()
    if left & versions(deployment):
        raise Failed(f"the failed deployment before has left the versions {left}, and they are still there")
    with changed(FUNCTION, b"\n"), changed(LATE, b"\n"), deployment.client().steady():
        told = log_of(lambda: deployment.deploy("--parameter-overrides", f"AlarmTopicArn={TOPIC}"))
    moved = [of(name, "all requests") for name in (HOOK, FUNCTION, LATE)]
    assert_told(told, [of(HOOK, "the hook reported Succeeded"), *moved])
    deployment.assert_data_kept()


def left_versions(deployment: Deployment) -> set[int]:
    """Returns the versions that are newer than the one with the requests. Lambda would not publish the same again."""
    alias = deployment.aws("lambda").get_alias(FunctionName=LATE, Name="live")
    return {version for version in versions(deployment) if version > int(alias["FunctionVersion"])}


def versions(deployment: Deployment) -> set[int]:
    listed = deployment.aws("lambda").list_versions_by_function(FunctionName=LATE)["Versions"]
    return {int(one["Version"]) for one in listed if one["Version"].isdigit()}


def changed(function: str, more: bytes):
    """Makes a function's program another one that does the same, until the block ends."""
    return replaced(function, program(function).read_bytes() + more)


@contextmanager
def replaced(function: str, by: bytes) -> Iterator[None]:
    """Puts another program in a function's place until the block ends."""
    file = program(function)
    built = file.read_bytes()
    file.write_bytes(by)
    try:
        yield
    finally:
        file.write_bytes(built)


def program(function: str):
    return PROGRAMS / function.removeprefix(f"{SERVICE}-") / "bootstrap"


def log_of(act) -> list[str]:
    """Does something. Returns what CodeDeploy's part in the emulator logged meanwhile, without times."""
    begun = cloud.log_size()
    act()
    return re.findall(r"INFO \[codedeploy\] (.*)", cloud.log_since(begun))


def of(function: str, told: str) -> str:
    return rf"{function}:live from version \d+ to \d+: {told}"


def assert_told(told: list[str], patterns: list[str]) -> None:
    if len(told) != len(patterns) or not all(map(re.fullmatch, patterns, told)):
        raise Failed(f"expected of CodeDeploy: {patterns}, got {told}")
