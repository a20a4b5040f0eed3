"""Removes both stacks and what they leave. Names what it could not remove."""

from collections.abc import Callable

from stack import Failed, Stack

# The stack with the bucket that sam uploads to. All stacks of the region share it.
UPLOADS = "aws-sam-cli-managed-default"


class Removal:
    """Removes what belongs to one stack, and goes on after a failure."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.resource, self.left = stack, stack.session.resource, []
        # Whatever outlives the stacks has a name that begins with it.
        self.prefix = f"{stack.name}-"

    def run(self) -> list[str]:
        """Removes everything. Returns what is left, for people."""
        for stack in (self.stack.name, self.stack.data):
            self.attempt(f"stack {stack}", self.remove_stack, stack)
        for kind in (self.tables, self.queues, self.buckets, self.secrets, self.uploads):
            self.attempt(kind.__name__, kind)
        return self.left

    def attempt(self, what: str, remove: Callable[..., object], *arguments: object, **named: object) -> None:
        print(f"   removing {what}", flush=True)
        try:
            remove(*arguments, **named)
        # Whatever it was, the rest has to go as well.
        except Exception as error:
            self.left.append(f"{what}: {error}")

    def remove_stack(self, name: str) -> None:
        if self.stack.settled(name) is None:
            return
        stack = self.resource("cloudformation").Stack(name)
        stack.delete()
        if self.stack.settled(name) is None:
            return
        # The second try leaves out what failed in the first.
        failed = [one for one in stack.resource_summaries.all() if one.resource_status == "DELETE_FAILED"]
        self.left += [f"{one.logical_id} of {name}: {one.resource_status_reason}" for one in failed]
        stack.delete(RetainResources=[one.logical_id for one in failed])
        if status := self.stack.settled(name):
            raise Failed(f"it is {status}")

    def tables(self) -> None:
        for table in self.resource("dynamodb").tables.all():
            if table.name.startswith(self.prefix):
                self.attempt(f"table {table.name}", table.delete)

    def queues(self) -> None:
        for queue in self.resource("sqs").queues.filter(QueueNamePrefix=self.prefix):
            self.attempt(f"queue {queue.url}", queue.delete)

    def buckets(self) -> None:
        for bucket in self.resource("s3").buckets.all():
            if bucket.name.startswith(self.prefix):
                self.attempt(f"objects of {bucket.name}", bucket.object_versions.delete)
                self.attempt(f"bucket {bucket.name}", bucket.delete)

    def secrets(self) -> None:
        client = self.stack.session.client("secretsmanager")
        for page in client.get_paginator("list_secrets").paginate(IncludePlannedDeletion=True):
            for arn in [secret["ARN"] for secret in page["SecretList"] if secret["Name"].startswith(self.prefix)]:
                self.attempt(f"secret {arn}", client.delete_secret, SecretId=arn, ForceDeleteWithoutRecovery=True)

    def uploads(self) -> None:
        if self.stack.status(UPLOADS):
            stack = self.resource("cloudformation").Stack(UPLOADS)
            bucket = self.resource("s3").Bucket(stack.Resource("SamCliSourceBucket").physical_resource_id)
            bucket.object_versions.filter(Prefix=f"{self.stack.name}/").delete()
