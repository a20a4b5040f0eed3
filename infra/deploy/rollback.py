"""Takes a roll-back that failed halfway to its end.

CloudFormation undoes a failed deployment. If that fails too, the stack is stuck: it takes no deployment, and part of the
failed release may still serve. Most causes pass by themselves: a limit of requests, or an alarm that still fires.
"""

import time

import boto3
from botocore.exceptions import WaiterError

from settings import Failed

STUCK = "UPDATE_ROLLBACK_FAILED"
# An alarm is quiet three minutes after its cause has gone.
TRIES, PAUSE_SECONDS = 6, 60


def go_on(stack: str, role: str | None, ask: bool) -> None:
    """Has CloudFormation try again what it could not undo. Leaves nothing out: that is for people to decide."""
    print(f"{stack} is {STUCK}: CloudFormation could not undo a deployment that failed.")
    print("\n".join(f"   {line}" for line in failures(stack)))
    if ask and input("Have it try again? [y/N] ").strip().lower() != "y":
        raise Failed(f"{stack} takes no deployment before its roll-back has ended")
    for left in reversed(range(TRIES)):
        if undone(stack, role):
            print(f"{stack} is as it was before the deployment that failed")
            return
        if left:
            print(f"it failed again; the next of {left} more tries is in {PAUSE_SECONDS} s", flush=True)
            time.sleep(PAUSE_SECONDS)
    reasons = "\n   ".join(failures(stack))
    raise Failed(
        f"{stack} could not be rolled back in {TRIES} tries:\n   {reasons}\n"
        'docs/deployment.md says what to do under "If a deployment fails"'
    )


def undone(stack: str, role: str | None) -> bool:
    client = boto3.client("cloudformation")
    [found] = client.describe_stacks(StackName=stack)["Stacks"]
    # Somebody else may have had it try again meanwhile.
    if found["StackStatus"] == STUCK:
        client.continue_update_rollback(StackName=stack, **({"RoleARN": role} if role else {}))
    try:
        client.get_waiter("stack_rollback_complete").wait(StackName=stack, WaiterConfig={"Delay": 5, "MaxAttempts": 1440})
    except WaiterError as error:
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
        if found["StackStatus"] != STUCK:
            raise Failed(f"{stack} is {found['StackStatus']}: {error}. Wait for its end, then deploy again") from None
        return False
    return True


def failures(stack: str) -> list[str]:
    """Returns the resources that failed, each with its reason."""
    pages = boto3.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    resources = (one for page in pages for one in page["StackResourceSummaries"])
    failed = (one for one in resources if one["ResourceStatus"].endswith("_FAILED"))
    return [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', 'no reason given')}" for one in failed]
