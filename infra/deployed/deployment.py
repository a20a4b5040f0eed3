"""The stacks under rehearsal, and the commands that operate them."""

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import cloud
from botocore.exceptions import ClientError
from client import Client
from steps import ROOT, Failed, run

# The stack name that samconfig.toml, the test harness and marketctl use by default.
SERVICE = "marketplace"
DATA = f"{SERVICE}-data"
DATA_TEMPLATE = "infra/data/template.yaml"
USER = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
# More requests per minute than the clients here send.
KEY_LIMIT = 15_000


class Deployment:
    """Both stacks, on one AWS."""

    def __init__(self, tools: Path, endpoint: str) -> None:
        self.endpoint = urlsplit(endpoint)
        # The scripts below infra/ find sam and boto3 by this path.
        path = os.pathsep.join([str(tools), os.environ["PATH"]])
        self.variables = cloud.variables(endpoint) | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        # boto3 below must not send through a proxy either.
        os.environ["NO_PROXY"] = self.variables["NO_PROXY"]
        credentials = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self.aws = partial(boto3.client, region_name="us-east-1", endpoint_url=endpoint, **credentials)
        self.stacks = self.aws("cloudformation")
        self.key = self.keyring = ""

    def deploy_data(self) -> None:
        self.sam("deploy-data", "--template-file", DATA_TEMPLATE)

    def deploy(self, *options: str) -> None:
        """Deploys the service."""
        self.sam("deploy", *options)

    def sam(self, name: str, *options: str) -> None:
        """Runs `sam deploy` as the guide says, and agrees to the changes. samconfig.toml says everything else.

        samconfig.toml names the region, whatever the shell is set to.
        """
        elsewhere = {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}
        run(name, ["sam", "deploy", *options], self.variables | elsewhere, typed="y\n")

    def assert_deploy_fails(self, status: str | None, *options: str) -> None:
        """Deploys the service. Fails unless that is refused and leaves the stack in this state."""
        stack = options[options.index("--stack-name") + 1] if "--stack-name" in options else SERVICE
        try:
            self.deploy(*options)
        except Failed:
            if (found := self.status(stack)) != status:
                raise Failed(f"{stack} is {found} after a release that must be refused, not {status}") from None
            return
        raise Failed("a release that must be refused was deployed")

    def clear_left(self) -> None:
        run("left", ["python", "infra/pipeline/left.py", SERVICE], self.variables)

    def delete(self, stack: str) -> None:
        """Deletes a stack, and waits until it is gone."""
        self.stacks.delete_stack(StackName=stack)
        self.stacks.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})

    def status(self, stack: str) -> str | None:
        """Returns the status of a stack, if there is one of this name."""
        try:
            return self.stacks.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return None

    def names(self) -> set[str]:
        """Returns the names of all stacks that there are."""
        pages = self.stacks.get_paginator("describe_stacks").paginate()
        return {stack["StackName"] for page in pages for stack in page["Stacks"]}

    def resources(self, stack: str) -> dict[str, set[str]]:
        """Returns the physical ids of a stack's resources, by their types."""
        found: dict[str, set[str]] = {}
        for page in self.stacks.get_paginator("list_stack_resources").paginate(StackName=stack):
            for resource in page["StackResourceSummaries"]:
                found.setdefault(resource["ResourceType"], set()).add(resource["PhysicalResourceId"])
        return found

    def functions(self) -> set[str]:
        return self.resources(SERVICE)["AWS::Lambda::Function"]

    def make_key(self) -> None:
        """Makes a key, and notes the keyring. Both must outlive all that happens to the stacks."""
        self.keyring = self.keyring_value()
        made = self.marketctl("keys", "create", "--user", USER, "--scope", "catalog:read")
        self.key = made["api_key"]
        self.marketctl("keys", "update", made["key_id"], "--limit", str(KEY_LIMIT))

    def marketctl(self, *arguments: str) -> dict:
        program = str(ROOT / "target" / "debug" / "marketctl")
        # Standard error has an audit line for each change.
        done = subprocess.run([program, "--json", *arguments], env=self.variables, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"marketctl {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def assert_noted(self, *expected: str) -> None:
        """Fails unless `marketctl check` makes notes that begin like these, and no others."""
        notes = self.marketctl("check").get("notes", [])
        if len(notes) != len(expected) or not all(map(str.startswith, notes, expected)):
            raise Failed(f"marketctl check notes {notes} instead of {expected}")

    def base_url(self) -> str:
        outputs = self.stacks.describe_stacks(StackName=SERVICE)["Stacks"][0]["Outputs"]
        return next(output["OutputValue"] for output in outputs if output["OutputKey"] == "BaseUrl")

    def client(self) -> Client:
        """Returns a client with the key. Its requests go to the function that `releases` changes."""
        host = urlsplit(self.base_url()).netloc
        return Client(self.endpoint.hostname, self.endpoint.port, host, "/v1/public/marketplaces", self.key)

    def keyring_value(self) -> str:
        return self.aws("secretsmanager").get_secret_value(SecretId=f"{SERVICE}-keyring")["SecretString"]

    def assert_data_kept(self) -> None:
        if (answer := self.client().get()) != "200":
            raise Failed(f"the key that was made first gets {answer}")
        if self.keyring_value() != self.keyring:
            raise Failed("the keyring is not the first one")
