"""The stacks under test, and the commands that operate them."""

import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "smoke"
# Only stacks with such a name are ever removed.
NAME = re.compile("smoke-[a-z0-9]{6}")
# What the service is deployed with at first.
PARAMETERS = {
    "LogRetentionDays": "7",
    "ThrottleRate": "1000",
    "ThrottleBurst": "500",
    "Tracing": "Active",
}
# Seconds that a stack has to end what it is doing, and seconds between two looks.
SETTLE, PAUSE = 7200, 5


class Failed(Exception):
    """A step failed. The arguments are the reasons."""


class Stack:
    """A service stack and its data stack."""

    def __init__(self, name: str, session: boto3.Session) -> None:
        if not NAME.fullmatch(name):
            raise Failed(f"{name} is no name for a smoke test: smoke- and six lower-case letters or digits")
        if not session.region_name:
            raise Failed("no region: give --region, or set AWS_DEFAULT_REGION")
        self.name, self.data, self.session, self.region = name, f"{name}-data", session, session.region_name
        self.cloudformation, self.parameters = session.resource("cloudformation"), PARAMETERS.copy()

    def status(self, stack: str) -> str | None:
        """Returns the status of a stack, or `None` if there is no such stack."""
        try:
            return self.cloudformation.Stack(stack).stack_status
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise

    def settled(self, stack: str) -> str | None:
        """Waits until a stack changes no more. Returns its status, or `None` if there is no such stack."""
        deadline = time.monotonic() + SETTLE
        # Nothing goes on in a stack whose first change set was never executed.
        while (status := self.status(stack)) and status.endswith("IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
            if time.monotonic() > deadline:
                raise Failed(f"{stack} is still {status} after {SETTLE} seconds")
            time.sleep(PAUSE)
        return status

    def base_url(self) -> str:
        outputs = self.cloudformation.Stack(self.name).outputs
        return next(output["OutputValue"] for output in outputs if output["OutputKey"] == "BaseUrl")

    def deploy_data(self) -> str:
        parameters = {"Stack": self.name, "DeletionProtection": "false"}
        return self.deploy(self.data, "infra/data/template.yaml", parameters, "--on-failure", "DELETE")

    def deploy_service(self) -> str:
        options = ["--s3-prefix", self.name, "--resolve-s3"]
        options += ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
        return self.deploy(self.name, "template.yaml", self.parameters, *options)

    def deploy(self, stack: str, template: str, parameters: dict[str, str], *options: str) -> str:
        command = [sys.executable, "-m", "samcli", "deploy", "--template-file", template, "--config-env", "dev"]
        command += ["--stack-name", stack, "--region", self.region, "--no-confirm-changeset"]
        command += ["--no-fail-on-empty-changeset", *options, "--parameter-overrides"]
        begun = datetime.now(UTC)
        try:
            return self.run(f"deploy-{stack}", command + [f"{name}={value}" for name, value in parameters.items()])
        except Failed as failure:
            # sam may end before the roll-back does.
            self.settled(stack)
            raise Failed(*failure.args, *self.reasons(begun)) from None

    def reasons(self, since: datetime) -> list[str]:
        """Returns why resources have failed, also of nested stacks and of stacks that are gone."""
        pages, found = self.cloudformation.meta.client.get_paginator("list_stacks").paginate(), set()
        for id in [one["StackId"] for page in pages for one in page["StackSummaries"] if self.name in one["StackName"]]:
            events = [one for one in self.cloudformation.Stack(id).events.all() if one.timestamp >= since]
            failed = [one for one in events if one.resource_status.endswith("FAILED")]
            found |= {f"{one.logical_resource_id}: {one.resource_status_reason}" for one in failed}
        return sorted(reason for reason in found if "cancelled" not in reason)

    def run(self, name: str, command: list[str], **more: str) -> str:
        """Runs a command and returns its output, which also goes to a log. Fails if the command does."""
        log = HOME / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w+", errors="replace") as file:
            own = self.variables() | more
            done = subprocess.run(command, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            file.seek(0)
            text = file.read()
        if done.returncode != 0:
            end = "\n  ".join(text.splitlines()[-15:])
            raise Failed(f"{name} ended with {done.returncode}. The end of {log.relative_to(ROOT)}:\n  {end}")
        return text

    def variables(self) -> dict[str, str]:
        """Returns the environment of a command, with credentials that are valid now, wherever they come from."""
        credentials = self.session.get_credentials().get_frozen_credentials()
        own = {name: value for name, value in os.environ.items() if name not in ("AWS_PROFILE", "AWS_SESSION_TOKEN")}
        own |= {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
        own |= {"AWS_SESSION_TOKEN": credentials.token} if credentials.token else {}
        return own | {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region, "SAM_CLI_TELEMETRY": "0"}


def is_aws() -> bool:
    """Returns whether calls go to AWS itself, and not to an emulator."""
    return not any(name.startswith("AWS_ENDPOINT_URL") and value for name, value in os.environ.items())
