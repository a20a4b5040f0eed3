"""Stacks are deleted, deployed again and adopted. Their data stays."""

from botocore.exceptions import ClientError

from deployment import DATA, SERVICE, Deployment
from steps import Failed, run

# What holds data. Each outlives its stack.
KEPT = ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")


def adopt_single_stack(deployment: Deployment) -> None:
    """Makes a single stack with a key, and moves its data into the data stack."""
    deployment.deploy_single_stack()
    deployment.make_key()
    before = deployment.resources(SERVICE)
    deployment.adopt("--dry-run")
    assert_same("the single stack after a dry run", deployment.resources(SERVICE), before)
    assert_gone(deployment, DATA)
    deployment.adopt()
    assert_same("the adopted data", kept(deployment, DATA), {kind: before[kind] for kind in KEPT})
    assert_same("the data that the single stack still holds", kept(deployment, SERVICE), {})


def replace_service(deployment: Deployment) -> None:
    """Deletes the service stack and deploys it again, on the same data."""
    before = kept(deployment, DATA)
    deployment.delete(SERVICE)
    assert_gone(deployment, SERVICE)
    assert_same("the data without a service", kept(deployment, DATA), before)
    deployment.deploy("--service-only")
    deployment.assert_data_kept()


def plan_smoke_test(deployment: Deployment) -> None:
    """Prints what a smoke test of a real account would do. It must change nothing."""
    before = deployment.names()
    run("smoke", ["infra/smoke/run", "--dry-run"], deployment.variables)
    if (after := deployment.names()) != before:
        raise Failed(f"a dry run of the smoke test changed the stacks from {before} to {after}")


def adopt_orphans(deployment: Deployment) -> None:
    """Deletes both stacks, brings what they leave into a new data stack, and deploys both."""
    before = kept(deployment, DATA)
    delete_protected(deployment)
    deployment.delete(SERVICE)
    deployment.adopt("--dry-run")
    assert_gone(deployment, DATA)
    deployment.adopt()
    assert_same("the adopted data", kept(deployment, DATA), before)
    deployment.deploy()
    deployment.assert_data_kept()


def delete_protected(deployment: Deployment) -> None:
    """Deletes the data stack, which its termination protection refuses at first."""
    try:
        deployment.stacks.delete_stack(StackName=DATA)
    except ClientError as refusal:
        if "TerminationProtection" not in str(refusal):
            raise
    else:
        raise Failed(f"{DATA} is not protected from termination")
    deployment.stacks.update_termination_protection(StackName=DATA, EnableTerminationProtection=False)
    deployment.delete(DATA)
    assert_gone(deployment, DATA)


def kept(deployment: Deployment, stack: str) -> dict[str, set[str]]:
    """Returns the resources of a stack that hold data."""
    return {kind: ids for kind, ids in deployment.resources(stack).items() if kind in KEPT}


def assert_gone(deployment: Deployment, stack: str) -> None:
    if status := deployment.status(stack):
        raise Failed(f"stack {stack} is {status} instead of gone")


def assert_same(name: str, found: dict[str, set[str]], expected: dict[str, set[str]]) -> None:
    if found != expected:
        raise Failed(f"{name}: expected {expected}, found {found}")
