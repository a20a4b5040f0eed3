"""Stacks are deleted and deployed again. Their data stays."""

from deployment import DATA, SERVICE, Deployment
from steps import Failed, run

OTHER = "another"
# What holds data. Each outlives its stack.
KEPT = ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")


def replace_service(deployment: Deployment) -> None:
    """Deletes the service stack and deploys it again, on the same data."""
    before = kept(deployment, DATA)
    deployment.delete(SERVICE)
    assert_gone(deployment, SERVICE)
    assert_same("the data without a service", kept(deployment, DATA), before)
    deployment.deploy()
    deployment.assert_data_kept()


def plan_smoke_test(deployment: Deployment) -> None:
    """Prints what a smoke test of a real account would do. It must change nothing."""
    before = deployment.names()
    run("smoke", ["infra/smoke/run", "--dry-run"], deployment.variables)
    if (after := deployment.names()) != before:
        raise Failed(f"a dry run of the smoke test changed the stacks from {before} to {after}")


def fail_first_deployment(deployment: Deployment) -> None:
    """Deploys a service without its data. Nothing of it is left, so that it can be deployed once its data is there."""
    deployment.assert_deploy_fails(None, "--stack-name", OTHER)


def kept(deployment: Deployment, stack: str) -> dict[str, set[str]]:
    """Returns the resources of a stack that hold data."""
    return {kind: ids for kind, ids in deployment.resources(stack).items() if kind in KEPT}


def assert_gone(deployment: Deployment, stack: str) -> None:
    if status := deployment.status(stack):
        raise Failed(f"stack {stack} is {status} instead of gone")


def assert_same(name: str, found: dict[str, set[str]], expected: dict[str, set[str]]) -> None:
    if found != expected:
        raise Failed(f"{name}: expected {expected}, found {found}")
