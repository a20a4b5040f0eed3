"""The rights of the delivery pipeline (infra/pipeline/policy.yaml), with which CloudFormation deploys the stacks."""

import time

from botocore.exceptions import ClientError

from stack import ROOT, Failed, Stack, is_aws

TEMPLATE = ROOT / "infra" / "pipeline" / "policy.yaml"
ADMINISTRATOR = "arn:{}:iam::aws:policy/AdministratorAccess"
# Seconds until IAM knows a role or a policy everywhere.
PROPAGATION = 20 if is_aws() else 0


def grant(stack: Stack) -> None:
    """Makes the pipeline's roles for the stack. From then on, its deployments use them."""
    stack.stacks.create_stack(
        StackName=stack.policy,
        TemplateBody=TEMPLATE.read_text(),
        Parameters=[{"ParameterKey": "Stack", "ParameterValue": stack.name}],
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    if (status := stack.settled(stack.policy)) != "CREATE_COMPLETE":
        raise Failed("\n".join([f"{stack.policy} is {status}", *stack.reasons(stack.policy, stack.begun)]))
    stack.parameters["PermissionsBoundary"] = stack.output("BoundaryArn", stack.policy)
    stack.parameters["CodeDeployRole"] = stack.output("CodeDeployRoleArn", stack.policy)
    stack.role = stack.output("ExecutionRoleArn", stack.policy)
    time.sleep(PROPAGATION)


def widen(stack: Stack) -> None:
    """Lets CloudFormation do everything, so that a missing right ends neither the run nor the removal."""
    change(stack, "attach_role_policy")
    time.sleep(PROPAGATION)


def narrow(stack: Stack) -> None:
    """Takes back what `widen` gave. Otherwise the role could not be deleted."""
    change(stack, "detach_role_policy")


def change(stack: Stack, method: str) -> None:
    iam = stack.client("iam")
    policy = ADMINISTRATOR.format(stack.session.get_partition_for_region(stack.session.region_name))
    try:
        getattr(iam, method)(RoleName=stack.execution, PolicyArn=policy)
    except ClientError as error:
        # There may be no such role, or it was never widened.
        if error.response["Error"]["Code"] != "NoSuchEntity":
            raise
