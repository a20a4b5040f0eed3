"""The two changes of an adoption: a stack lets go of resources, and another takes them in."""

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


def release(aws: Aws, stack: str, resources: list[Resource]) -> None:
    """Takes resources out of a stack, which keeps them. Everything else in the stack stays as it is."""
    template = without(original(aws, stack), resources)
    changes = change_set(aws, stack, "UPDATE", template, parameters(template))
    ids = {resource.id for resource in resources}
    removed = {change["LogicalResourceId"] for change in changes["changes"] if change["Action"] == "Remove"}
    lost = [
        change["LogicalResourceId"]
        for change in changes["changes"]
        if change["Action"] == "Add"
        or change.get("Replacement") == "True"
        or (change["Action"] == "Remove" and change.get("PolicyAction") != "Retain")
    ]
    if lost or removed != ids:
        discard(aws, stack, changes["id"])
        wrong = lost or sorted(removed ^ ids)
        raise Failed(f"CloudFormation would not just let go of the resources of {stack}: see {', '.join(wrong)}")
    execute(aws, stack, changes["id"], "stack_update_complete")


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
    made = change_set(aws, data_stack, "IMPORT", template, values, ResourcesToImport=imports)
    execute(aws, data_stack, made["id"], "stack_import_complete")


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


def without(template: dict, resources: list[Resource]) -> dict:
    """Returns a template without these resources. What refers to them names them instead."""
    by_id = {resource.id: resource for resource in resources}
    kept = {id: declared for id, declared in template["Resources"].items() if id not in by_id}
    return named(template | {"Resources": kept}, by_id)


def named(value: object, by_id: dict[str, Resource]) -> object:
    match value:
        case {"Ref": str(id)} if id in by_id:
            return by_id[id].physical
        case {"Fn::GetAtt": [str(id), "Arn"]} if id in by_id:
            return by_id[id].arn
        case {"Fn::Sub": str(text)}:
            for id, resource in by_id.items():
                text = text.replace(f"${{{id}}}", resource.physical or "").replace(f"${{{id}.Arn}}", resource.arn)
            return {"Fn::Sub": text}
        case dict():
            return {name: named(inner, by_id) for name, inner in value.items()}
        case list():
            return [named(inner, by_id) for inner in value]
    return value


def original(aws: Aws, stack: str) -> dict:
    """Returns the template with which a stack was deployed."""
    body = aws.cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
    return yaml_parse(body) if isinstance(body, str) else json.loads(json.dumps(body))


def parameters(template: dict) -> list[dict]:
    return [{"ParameterKey": name, "UsePreviousValue": True} for name in template.get("Parameters", {})]


def change_set(aws: Aws, stack: str, kind: str, template: dict, values: list[dict], **more: object) -> dict:
    """Makes a change set. Returns its id and its changes."""
    body = json.dumps(template, separators=(",", ":"), default=str)
    size = len(body.encode())
    if size > LARGEST_TEMPLATE:
        raise Failed(f"the template of {stack} would have {size} bytes, and {LARGEST_TEMPLATE} are allowed")
    client = aws.cloudformation
    made = client.create_change_set(
        StackName=stack,
        ChangeSetName=f"adopt-{int(time.time() * 1000)}",
        ChangeSetType=kind,
        TemplateBody=body,
        Parameters=values,
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        **more,
    )["Id"]
    try:
        client.get_waiter("change_set_create_complete").wait(ChangeSetName=made, StackName=stack, WaiterConfig=PATIENCE)
    except WaiterError:
        reason = client.describe_change_set(ChangeSetName=made, StackName=stack).get("StatusReason")
        discard(aws, stack, made)
        raise Failed(f"CloudFormation refuses the change of {stack}: {reason}") from None
    pages = client.get_paginator("describe_change_set").paginate(ChangeSetName=made, StackName=stack)
    pages = list(pages)
    if pages[0].get("ExecutionStatus") == "UNAVAILABLE":
        discard(aws, stack, made)
        raise Failed(f"CloudFormation refuses the change of {stack}: {pages[0].get('StatusReason')}")
    return {"id": made, "changes": [change["ResourceChange"] for page in pages for change in page["Changes"]]}


def discard(aws: Aws, stack: str, change_set: str) -> None:
    aws.cloudformation.delete_change_set(ChangeSetName=change_set, StackName=stack)


def execute(aws: Aws, stack: str, change_set: str, waiter: str) -> None:
    aws.cloudformation.execute_change_set(ChangeSetName=change_set, StackName=stack)
    try:
        aws.cloudformation.get_waiter(waiter).wait(StackName=stack, WaiterConfig=PATIENCE)
    except WaiterError as error:
        raise Failed(f"the change of {stack} failed: {error}. Look at its events, then run this again") from None
