"""The change of an adoption: the data stack takes resources in."""

import json
import time

from botocore.exceptions import ClientError, WaiterError
from samcli.yamlhelper import yaml_parse

from resources import Aws, Failed, Resource

# A stack in these states can be changed.
SETTLED = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
)
# CloudFormation's limit for a template that is not in a bucket, in bytes.
LARGEST_TEMPLATE = 51_200
PATIENCE = {"Delay": 3, "MaxAttempts": 400}


def status(aws: Aws, stack: str) -> str | None:
    """Returns the state of a stack, or `None` if there is no such stack."""
    try:
        return aws.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            return None
        raise


def take_in(aws: Aws, stack: str, data_stack: str, resources: list[Resource]) -> None:
    """Imports resources into the data stack. They must not belong to any stack."""
    if status(aws, data_stack) in (None, "REVIEW_IN_PROGRESS"):
        template = {name: value for name, value in aws.template.items() if name != "Resources"} | {"Resources": {}}
        protected = any(resource.live.get("DeletionProtectionEnabled") for resource in resources)
        given = {"Stack": stack, "DeletionProtection": str(protected).lower()}
        values = [{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()]
    else:
        template = original(aws, data_stack)
        values = parameters(template)
    for resource in resources:
        template["Resources"][resource.id] = as_it_exists(aws.template["Resources"][resource.id], resource)
    imports = [resource.to_import() for resource in resources]
    execute(aws, data_stack, import_set(aws, data_stack, template, values, imports))


def as_it_exists(declared: dict, resource: Resource) -> dict:
    """Returns a resource for an import.

    CloudFormation changes an imported resource to what the template says, but later regards it as being so in any case.
    A queue is imported with the attributes that it has. The next deployment then changes those that differ.

    The template's RetainExceptOnCreate lets CloudFormation delete a resource if the change that brought it into the
    stack fails. AWS does not say that an import is no such change, so here everything is retained.
    """
    kept = declared | {"DeletionPolicy": "Retain"}
    if resource.type == "AWS::SQS::Queue":
        return kept | {"Properties": resource.live}
    return kept


def original(aws: Aws, stack: str) -> dict:
    """Returns the template with which a stack was deployed."""
    body = aws.cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
    return yaml_parse(body) if isinstance(body, str) else json.loads(json.dumps(body))


def parameters(template: dict) -> list[dict]:
    return [{"ParameterKey": name, "UsePreviousValue": True} for name in template.get("Parameters", {})]


def import_set(aws: Aws, stack: str, template: dict, values: list[dict], imports: list[dict]) -> str:
    """Makes a change set that imports resources. Returns its id."""
    body = json.dumps(template, separators=(",", ":"), default=str)
    size = len(body.encode())
    if size > LARGEST_TEMPLATE:
        raise Failed(f"the template of {stack} would have {size} bytes, and {LARGEST_TEMPLATE} are allowed")
    client = aws.cloudformation
    made = client.create_change_set(
        StackName=stack,
        ChangeSetName=f"adopt-{int(time.time() * 1000)}",
        ChangeSetType="IMPORT",
        TemplateBody=body,
        Parameters=values,
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        ResourcesToImport=imports,
    )["Id"]
    try:
        client.get_waiter("change_set_create_complete").wait(ChangeSetName=made, StackName=stack, WaiterConfig=PATIENCE)
    except WaiterError:
        reason = client.describe_change_set(ChangeSetName=made, StackName=stack).get("StatusReason")
        discard(aws, stack, made)
        raise Failed(f"CloudFormation refuses the change of {stack}: {reason}") from None
    found = client.describe_change_set(ChangeSetName=made, StackName=stack)
    if found.get("ExecutionStatus") == "UNAVAILABLE":
        discard(aws, stack, made)
        raise Failed(f"CloudFormation refuses the change of {stack}: {found.get('StatusReason')}")
    return made


def discard(aws: Aws, stack: str, change_set: str) -> None:
    aws.cloudformation.delete_change_set(ChangeSetName=change_set, StackName=stack)


def execute(aws: Aws, stack: str, change_set: str) -> None:
    aws.cloudformation.execute_change_set(ChangeSetName=change_set, StackName=stack)
    try:
        aws.cloudformation.get_waiter("stack_import_complete").wait(StackName=stack, WaiterConfig=PATIENCE)
    except WaiterError as error:
        raise Failed(f"the change of {stack} failed: {error}. Look at its events, then run this again") from None
