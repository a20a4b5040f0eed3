"""Removes all stacks and all that they leave. Names what it could not remove."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import boto3

import rights
from stack import Failed, Stack

# The stack with the bucket that sam uploads to.
UPLOADS = "aws-sam-cli-managed-default"
# How many times to look whether a table is there, with 20 seconds between two looks.
ATTEMPTS = 180


class Removal:
    """Removes what belongs to one stack, and goes on after a failure."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.left: list[str] = []
        # Why CloudFormation could not remove something at the first try.
        self.refused: list[str] = []

    def run(self) -> list[str]:
        """Removes everything. Returns what is left, for people."""
        for stack in (self.stack.name, self.stack.data):
            self.attempt(f"stack {stack}", lambda stack=stack: self.remove_stack(stack))
        for what, remove in self.retained():
            self.attempt(what, remove)
        self.attempt(f"stack {self.stack.policy}", self.remove_rights)
        return self.left

    def remove_rights(self) -> None:
        if there := [name for name in (self.stack.name, self.stack.data) if self.stack.status(name)]:
            raise Failed(f"it has the role that CloudFormation needs to remove {' and '.join(there)}")
        rights.narrow(self.stack)
        self.remove_stack(self.stack.policy)

    def attempt(self, what: str, act: Callable[[], object]) -> None:
        print(f"   removing {what}", flush=True)
        try:
            act()
        # Whatever it was, the rest has to go as well.
        except Exception as error:
            self.left.append(f"{what}: {error}")

    def remove_stack(self, stack: str) -> None:
        client = self.stack.stacks
        if self.stack.settled(stack) is None:
            return
        begun = datetime.now(UTC)
        # The second try has all rights. A third leaves in place what the others could not remove.
        for number in range(3):
            kept = self.undeletable(stack) if number == 2 else []
            client.delete_stack(StackName=stack, **({"RetainResources": kept} if kept else {}))
            if self.stack.settled(stack) is None:
                self.left += [f"{name} of stack {stack}, which CloudFormation could not remove" for name in kept]
                return
            if number == 0 and stack != self.stack.policy:
                self.refused += self.stack.reasons(stack, begun)
                rights.widen(self.stack)
        raise Failed(f"it is {self.stack.status(stack)}")

    def undeletable(self, stack: str) -> list[str]:
        pages = self.stack.stacks.get_paginator("list_stack_resources").paginate(StackName=stack)
        resources = (resource for page in pages for resource in page["StackResourceSummaries"])
        return [found["LogicalResourceId"] for found in resources if found["ResourceStatus"] == "DELETE_FAILED"]

    def retained(self) -> Iterable[tuple[str, Callable[[], object]]]:
        """Yields what no stack removes, and how to remove it. Says so if something cannot be listed."""
        listers = self.tables, self.backups, self.queues, self.buckets, self.secrets, self.log_groups, self.uploads
        for lister in listers:
            try:
                yield from lister()
            except Exception as error:
                self.left.append(f"unknown {lister.__name__}, because they could not be listed: {error}")

    def belongs(self, name: str) -> bool:
        return name.startswith(f"{self.stack.name}-")

    def tables(self):
        client = self.stack.client("dynamodb")
        for page in client.get_paginator("list_tables").paginate():
            for name in filter(self.belongs, page["TableNames"]):
                yield f"table {name}", lambda name=name: delete_table(client, name)

    def backups(self):
        client = self.stack.client("dynamodb")
        for page in client.get_paginator("list_backups").paginate(BackupType="USER"):
            for backup in page["BackupSummaries"]:
                if self.belongs(backup["TableName"]):
                    what = f"backup {backup['BackupName']} of {backup['TableName']}"
                    yield what, lambda arn=backup["BackupArn"]: client.delete_backup(BackupArn=arn)

    def queues(self):
        client = self.stack.client("sqs")
        for url in client.list_queues(QueueNamePrefix=f"{self.stack.name}-").get("QueueUrls", []):
            yield f"queue {url}", lambda url=url: client.delete_queue(QueueUrl=url)

    def buckets(self):
        client = self.stack.client("s3")
        for bucket in client.list_buckets()["Buckets"]:
            if self.belongs(bucket["Name"]):
                yield f"bucket {bucket['Name']}", lambda name=bucket["Name"]: delete_bucket(self.stack.session, name)

    def secrets(self):
        client = self.stack.client("secretsmanager")
        for page in client.get_paginator("list_secrets").paginate(IncludePlannedDeletion=True):
            for secret in page["SecretList"]:
                if self.belongs(secret["Name"]):
                    arn = secret["ARN"]
                    yield f"secret {secret['Name']}", lambda arn=arn: client.delete_secret(
                        SecretId=arn, ForceDeleteWithoutRecovery=True
                    )

    def log_groups(self):
        client = self.stack.client("logs")
        for prefix in ("/aws/lambda/", "/aws/lambda/CodeDeployHook_", "/aws/vendedlogs/apigateway/"):
            pages = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix + self.stack.name)
            for name in [group["logGroupName"] for page in pages for group in page["logGroups"]]:
                yield f"log group {name}", lambda name=name: client.delete_log_group(logGroupName=name)

    def uploads(self):
        """What sam uploaded, in a bucket that it shares between all stacks of the region."""
        if not self.stack.status(UPLOADS):
            return
        found = self.stack.stacks.describe_stack_resource(StackName=UPLOADS, LogicalResourceId="SamCliSourceBucket")
        bucket = found["StackResourceDetail"]["PhysicalResourceId"]
        objects = self.stack.session.resource("s3").Bucket(bucket).object_versions.filter(Prefix=f"{self.stack.name}/")
        yield f"uploads in {bucket}/{self.stack.name}/", objects.delete


def delete_table(client, name: str) -> None:
    if client.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
        client.update_table(TableName=name, DeletionProtectionEnabled=False)
    # A table that is being restored cannot be deleted.
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"MaxAttempts": ATTEMPTS})
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name)


def delete_bucket(session: boto3.Session, name: str) -> None:
    bucket = session.resource("s3").Bucket(name)
    bucket.object_versions.delete()
    bucket.delete()
