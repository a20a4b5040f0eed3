"""CodeDeploy, which ministack lacks: it moves aliases to new versions at once, and asks a hook before.

ministack ignores an alias's `UpdatePolicy`. A stack's deployments come one after the other here, in AWS all at once.
"""

import json
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from handlers import HANDLERS, put_in
from ministack import app
from ministack.core import iam_actions, router
from ministack.core.responses import error_response_json, json_response
from ministack.services import lambda_svc
from ministack.services.cloudformation import _stacks, changesets, engine, stacks

TARGET = "CodeDeploy_20141006"
# Seconds that a hook has to report. In AWS it has an hour.
HOOK_SECONDS = 180
LOGGER = logging.getLogger("codedeploy")
# UpdatePolicy of aliases, by the names of their stack and in the template.
POLICIES: dict[tuple[str, str], dict] = {}
# Properties of deployment groups, by name.
GROUPS: dict[str, dict] = {}
DEPLOYMENTS: dict[str, "Deployment"] = {}


@dataclass
class Deployment:
    """One deployment of a function's new version."""

    group: str
    # Who wanted it: CloudFormation, or CloudFormationRollback on a stack's way back.
    creator: str
    status: str = "InProgress"
    # What the hook reported, if it has.
    hook_status: str | None = None
    id: str = field(default_factory=lambda: f"d-{uuid4().hex[:9].upper()}")

    def __post_init__(self):
        DEPLOYMENTS[self.id] = self

    @property
    def execution_id(self) -> str:
        """The id by which the hook reports."""
        return f"hook-{self.id}"


class Refused(ValueError):
    """A deployment failed. The alias is at its old version."""


# ---- What CloudFormation does ----


def with_policies(deploy, stack_name, stack_id, template, *arguments, **options):
    """Notes the aliases' policies. An alias is updated after the resources that its policy names."""
    for logical_id, resource in template["Resources"].items():
        policy = resource.get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if resource["Type"] == "AWS::Lambda::Alias" and policy:
            POLICIES[stack_name, logical_id] = policy
            named = {name for name, _ in engine._intrinsic_references(policy)}
            resource["DependsOn"] = sorted(named)
    return deploy(stack_name, stack_id, template, *arguments, **options)


@put_in("AWS::Lambda::Alias", "update")
def moved_by_codedeploy(update, arn, old, new, stack_name, logical_id=None):
    policy = POLICIES.get((stack_name, logical_id))
    if policy and old["FunctionVersion"] != new["FunctionVersion"]:
        resources, returning = _stacks[stack_name]["_resources"], "ROLLBACK" in _stacks[stack_name]["StackStatus"]
        group = resources[policy["DeploymentGroupName"]["Ref"]]["PhysicalResourceId"]
        hook = policy.get("BeforeAllowTrafficHook", {}).get("Ref")
        name = f"{new['FunctionName']}:{new['Name']} from version {old['FunctionVersion']} to {new['FunctionVersion']}"
        deployment = Deployment(group, "CloudFormationRollback" if returning else "CloudFormation")
        deploy(name, hook and resources[hook]["PhysicalResourceId"], deployment)
    return update(arn, old, new, stack_name, logical_id)


def deploy(name, hook, deployment):
    """Asks the hook, if there is one. Leaves the move itself to the caller."""
    try:
        if hook:
            ask(hook, deployment)
            LOGGER.info("%s: the hook reported %s", name, deployment.hook_status)
            if deployment.hook_status != "Succeeded":
                raise Refused("the hook refused")
    except Refused as refused:
        deployment.status = "Failed"
        LOGGER.info("%s: failed, %s", name, refused)
        raise
    deployment.status = "Succeeded"
    LOGGER.info("%s: all requests", name)


def ask(hook, deployment):
    """Invokes the hook as CodeDeploy does, and waits for its report."""
    event = {"DeploymentId": deployment.id, "LifecycleEventHookExecutionId": deployment.execution_id}
    function, _ = lambda_svc._get_func_record_for_qualifier(hook, None)
    lambda_svc.invoke_async_with_retry(function, event)
    deadline = time.monotonic() + HOOK_SECONDS
    while not deployment.hook_status:
        if time.monotonic() > deadline:
            raise Refused("the hook did not report")
        time.sleep(0.1)


def runs_on_worker_thread(original, kind):
    """A deployment waits, which must not hold up everything else."""
    return kind == "AWS::Lambda::Alias" or original(kind)


def create_application(logical_id, props, stack_name):
    return props.get("ApplicationName") or generated_name(logical_id, stack_name), {}


def create_group(logical_id, props, stack_name):
    name = props.get("DeploymentGroupName") or generated_name(logical_id, stack_name)
    GROUPS[name] = props
    return name, {}


def update_group(name, old, new, stack_name):
    GROUPS[name] = new
    return name, {}


def delete_group(name, props):
    del GROUPS[name]


def generated_name(logical_id, stack_name):
    return f"{stack_name}-{logical_id}-{uuid4().hex[:12].upper()}"


# ---- What the hook calls ----


async def handle(method, path, headers, body, query_params):
    called = json.loads(body)
    if called["deploymentId"] not in DEPLOYMENTS:
        return error_response_json("DeploymentDoesNotExistException", called["deploymentId"], 400)
    return ACTIONS[headers["x-amz-target"].removeprefix(f"{TARGET}.")](called)


def get(body):
    deployment = DEPLOYMENTS[body["deploymentId"]]
    told = {"deploymentId": deployment.id, "status": deployment.status, "creator": deployment.creator}
    return json_response({"deploymentInfo": told | {"deploymentGroupName": deployment.group}})


def report(body):
    deployment, execution = DEPLOYMENTS[body["deploymentId"]], body["lifecycleEventHookExecutionId"]
    if execution != deployment.execution_id:
        return error_response_json("InvalidLifecycleEventHookExecutionIdException", execution, 400)
    deployment.hook_status = body["status"]
    return json_response({"lifecycleEventHookExecutionId": execution})


def resource(resource_of, service, method, path, headers, body, query_params, region, account):
    """Returns the ARN that a call's permission must allow: that of the deployment group."""
    if service != "codedeploy":
        return resource_of(service, method, path, headers, body, query_params, region, account)
    deployment = DEPLOYMENTS.get(json.loads(body).get("deploymentId"))
    if deployment is None:
        return "*"
    application = GROUPS[deployment.group]["ApplicationName"]
    return f"arn:aws:codedeploy:{region}:{account}:deploymentgroup:{application}/{deployment.group}"


ACTIONS = {"GetDeployment": get, "PutLifecycleEventHookExecutionStatus": report}
HANDLERS["AWS::CodeDeploy::Application"] = {"create": create_application, "delete": lambda *_: None}
HANDLERS["AWS::CodeDeploy::DeploymentGroup"] = {"create": create_group, "update": update_group, "delete": delete_group}
changesets._deploy_stack_async = partial(with_policies, changesets._deploy_stack_async)
stacks._runs_on_worker_thread = partial(runs_on_worker_thread, stacks._runs_on_worker_thread)
router.SERVICE_PATTERNS["codedeploy"] = {"target_prefixes": [TARGET]}
app.SERVICE_HANDLERS["codedeploy"] = handle
iam_actions.SERVICE_TO_IAM_NAMESPACE["codedeploy"] = "codedeploy"
iam_actions.extract_resource_arn = partial(resource, iam_actions.extract_resource_arn)
