"""Stacks are deleted, deployed again and adopted. Their data stays."""

import json

from botocore.exceptions import ClientError
from samcli.yamlhelper import yaml_parse

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
    deployment.deploy("--service-only")
    deployment.assert_data_kept()


def plan_smoke_test(deployment: Deployment) -> None:
    """Prints what a smoke test of a real account would do. It must change nothing."""
    before = deployment.names()
    run("smoke", ["infra/smoke/run", "--dry-run"], deployment.variables)
    if (after := deployment.names()) != before:
        raise Failed(f"a dry run of the smoke test changed the stacks from {before} to {after}")


def adopt_orphans(deployment: Deployment) -> None:
    """Deletes both stacks, brings what they leave into a new data stack, and deploys both.

    The adoption is killed once, and then goes on.
    """
    before = kept(deployment, DATA)
    delete_protected(deployment)
    deployment.delete(SERVICE)
    deployment.adopt("--dry-run")
    refuse_what_another_stack_owns(deployment)
    assert_gone(deployment, DATA)
    deployment.interrupt_adoption()
    deployment.adopt()
    assert_retained(deployment)
    assert_same("the adopted data", kept(deployment, DATA), before)
    deployment.deploy()
    deployment.assert_data_kept()


def refuse_what_another_stack_owns(deployment: Deployment) -> None:
    """Lets another stack own a queue for a while, in which nothing may be adopted."""
    queue = {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain", "Properties": {"QueueName": f"{SERVICE}-feed"}}
    template = json.dumps({"Resources": {"Queue": queue}})
    deployment.stacks.create_stack(StackName=OTHER, TemplateBody=template)
    deployment.stacks.get_waiter("stack_create_complete").wait(StackName=OTHER, WaiterConfig={"Delay": 1})
    deployment.assert_adoption_refused(f"{OTHER}, another stack, owns {SERVICE}-feed")
    deployment.delete(OTHER)


def deploy_before_later_data(deployment: Deployment) -> None:
    """Deploys this release after a later one, which has added a queue. The data stack must keep the queue."""
    template = yaml_parse(deployment.stacks.get_template(StackName=DATA, TemplateStage="Original")["TemplateBody"])
    queue = {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain", "Properties": {"QueueName": f"{SERVICE}-later"}}
    template["Resources"]["LaterQueue"] = queue
    values = [{"ParameterKey": name, "UsePreviousValue": True} for name in template["Parameters"]]
    body = json.dumps(template, default=str)
    deployment.stacks.update_stack(StackName=DATA, TemplateBody=body, Parameters=values)
    deployment.stacks.get_waiter("stack_update_complete").wait(StackName=DATA, WaiterConfig={"Delay": 1})
    before = kept(deployment, DATA)
    deployment.deploy("--data-only")
    assert_same("the data of a later release", kept(deployment, DATA), before)


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


def assert_retained(deployment: Deployment) -> None:
    """Fails if a failed import might have deleted what it was to bring in."""
    template = deployment.stacks.get_template(StackName=DATA, TemplateStage="Original")["TemplateBody"]
    resources = (json.loads(template) if isinstance(template, str) else template)["Resources"]
    if lost := sorted(id for id, declared in resources.items() if declared["DeletionPolicy"] != "Retain"):
        raise Failed(f"imported without DeletionPolicy Retain: {', '.join(lost)}")


def assert_gone(deployment: Deployment, stack: str) -> None:
    if status := deployment.status(stack):
        raise Failed(f"stack {stack} is {status} instead of gone")


def assert_same(name: str, found: dict[str, set[str]], expected: dict[str, set[str]]) -> None:
    if found != expected:
        raise Failed(f"{name}: expected {expected}, found {found}")
