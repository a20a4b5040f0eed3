"""The stacks under test in one account, and the commands that operate them."""

import json
import os
import re
import secrets
import string
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "infra" / "deploy"))

import events
from programs import PROGRAMS, architecture
from settings import Failed

HOME = ROOT / "target" / "smoke"
# Only stacks with such a name are ever removed.
NAME = re.compile("smoke-[a-z0-9]{6}")
# The production way, so that a broken version has something to go back to.
PARAMETERS = {
    "Alarms": "off",
    "DeletionProtection": "false",
    "Rollout": "Canary10Percent5Minutes",
    "ThrottleRate": "1000",
    "ThrottleBurst": "500",
}
# Seconds that a stack has to end what it is doing, and seconds between two looks.
SETTLE = 7200
PAUSE = 5
# A stack whose first change set was never executed.
NOT_BEGUN = ("REVIEW_IN_PROGRESS",)
# The last lines of a failed command's output that are shown.
TAIL = 15


@dataclass
class Stack:
    """A service stack and its data stack."""

    name: str
    session: boto3.Session = field(default_factory=boto3.Session)
    # What deployments give to both templates.
    parameters: dict[str, str] = field(default_factory=PARAMETERS.copy)
    # The role that CloudFormation takes. Without it, CloudFormation does what the caller may do.
    role: str | None = None
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise Failed(f"{self.name} is no name for a smoke test: smoke- and six letters or digits")
        if not self.session.region_name:
            raise Failed("no region: give --region, or set AWS_DEFAULT_REGION")
        self.stacks = self.client("cloudformation")

    @property
    def data(self) -> str:
        return f"{self.name}-data"

    @property
    def policy(self) -> str:
        """The stack with the pipeline's rights."""
        return f"pipeline-{self.name}-policy"

    @property
    def execution(self) -> str:
        """The role's name, as policy.yaml gives it."""
        return f"pipeline-{self.name}-execution"

    def client(self, service: str):
        return self.session.client(service)

    def account(self) -> str:
        return self.client("sts").get_caller_identity()["Account"]

    def status(self, stack: str) -> str | None:
        """Returns the status of a stack, or `None` if there is no such stack."""
        try:
            return self.stacks.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise

    def settled(self, stack: str) -> str | None:
        """Waits until a stack changes no more. Returns its status, or `None` if there is no such stack."""
        deadline = time.monotonic() + SETTLE
        while (status := self.status(stack)) and status.endswith("IN_PROGRESS") and status not in NOT_BEGUN:
            if time.monotonic() > deadline:
                raise Failed(f"{stack} is still {status} after {SETTLE} seconds")
            time.sleep(PAUSE)
        return status

    def reasons(self, stack: str, since: datetime) -> list[str]:
        """Returns why resources of a stack, or of one nested in it, have failed."""
        return events.reasons(self.stacks, stack, since) if self.status(stack) else []

    def deploy(self, *options: str) -> None:
        parameters = self.parameters | {"Architecture": architecture()}
        command = [sys.executable, "-B", "infra/deploy/run", "--config-env", "dev", "--yes"]
        command += ["--stack-name", self.name, "--region", self.session.region_name, *options]
        command += ["--role-arn", self.role] if self.role else []
        self.run("deploy", command + [part for pair in parameters.items() for part in ("--parameter", "=".join(pair))])

    def output(self, name: str, stack: str | None = None) -> str:
        """Returns an output of the service stack, or of another one."""
        outputs = self.stacks.describe_stacks(StackName=stack or self.name)["Stacks"][0]["Outputs"]
        return next(output["OutputValue"] for output in outputs if output["OutputKey"] == name)

    def resource(self, logical_id: str) -> str:
        """Returns the physical id of a resource of the service stack."""
        found = self.stacks.describe_stack_resource(StackName=self.name, LogicalResourceId=logical_id)
        return found["StackResourceDetail"]["PhysicalResourceId"]

    def marketctl(self, *arguments: str) -> dict:
        program = str(ROOT / "target" / "debug" / "marketctl")
        command = [program, "--stack", self.name, "--json", *arguments]
        done = subprocess.run(command, env=self.variables(), capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"marketctl {arguments[0]} ended with {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)

    def run(self, name: str, command: list[str], **more: str) -> str:
        """Runs a command, with its output in a log. Returns the output. Fails if the command does."""
        log = log_file(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file:
            done = subprocess.run(
                command, cwd=ROOT, env=self.variables() | more, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        text = log.read_text(errors="replace")
        if done.returncode != 0:
            end = "\n  ".join(text.splitlines()[-TAIL:])
            raise Failed(f"{name} ended with {done.returncode}. The end of {log.relative_to(ROOT)}:\n  {end}")
        return text

    def variables(self) -> dict[str, str]:
        """Returns the environment of a command, with credentials that are valid now, wherever they come from."""
        credentials = self.session.get_credentials().get_frozen_credentials()
        own = {name: value for name, value in os.environ.items() if name not in ("AWS_PROFILE", "AWS_SESSION_TOKEN")}
        own |= {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
        if credentials.token:
            own["AWS_SESSION_TOKEN"] = credentials.token
        region = self.session.region_name
        return own | {"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "SAM_CLI_TELEMETRY": "0"}


def log_file(name: str) -> Path:
    return HOME / "logs" / f"{name}.log"


def fresh_name() -> str:
    return "smoke-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(6))


def is_aws() -> bool:
    """Returns whether calls go to AWS itself, and not to an emulator."""
    return not any(name.startswith("AWS_ENDPOINT_URL") and value for name, value in os.environ.items())
