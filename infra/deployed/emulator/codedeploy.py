"""CodeDeploy, which ministack lacks: applications, deployment groups, and what a hook calls.

`aliases` makes the deployments. A minute of a deployment takes a second here.
"""

import json
import re
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from handlers import HANDLERS
from ministack import app
from ministack.core import iam_actions, router
from ministack.core.responses import error_response_json, json_response
from ministack.services import cloudwatch

TARGET = "CodeDeploy_20141006"
MINUTE_SECONDS = 1
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

    def ringing_alarm(self) -> str | None:
        """Returns an alarm of the group that has gone off, if there is one."""
        watched = GROUPS[self.group].get("AlarmConfiguration") or {}
        names = [alarm["Name"] for alarm in watched.get("Alarms", []) if watched.get("Enabled")]
        ringing = (name for name in names if cloudwatch._rule_alarm_state(name) == "ALARM")
        return next(ringing, None)

    def shifts(self) -> list[tuple[float, float]]:
        """Returns the shares of requests that the new version gets, each with the seconds that it lasts."""
        name = GROUPS[self.group]["DeploymentConfigName"]
        if found := re.fullmatch(r"CodeDeployDefault\.LambdaCanary(\d+)Percent(\d+)Minutes", name):
            percent, minutes = map(int, found.groups())
            return [(percent / 100, minutes * MINUTE_SECONDS)]
        if found := re.fullmatch(r"CodeDeployDefault\.LambdaLinear(\d+)PercentEvery(\d+)Minutes?", name):
            percent, minutes = map(int, found.groups())
            return [(share / 100, minutes * MINUTE_SECONDS) for share in range(percent, 100, percent)]
        if name == "CodeDeployDefault.LambdaAllAtOnce":
            return []
        raise ValueError(f"unknown deployment configuration {name}")


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


ACTIONS = {"GetDeployment": get, "PutLifecycleEventHookExecutionStatus": report}


async def handle(method, path, headers, body, query_params):
    called = json.loads(body)
    if called["deploymentId"] not in DEPLOYMENTS:
        return error_response_json("DeploymentDoesNotExistException", called["deploymentId"], 400)
    return ACTIONS[headers["x-amz-target"].removeprefix(f"{TARGET}.")](called)


def resource(resource_of, service, method, path, headers, body, query_params, region, account):
    """Returns the ARN that a call's permission must allow: that of the deployment group."""
    if service != "codedeploy":
        return resource_of(service, method, path, headers, body, query_params, region, account)
    deployment = DEPLOYMENTS.get(json.loads(body).get("deploymentId"))
    if deployment is None:
        return "*"
    application = GROUPS[deployment.group]["ApplicationName"]
    return f"arn:aws:codedeploy:{region}:{account}:deploymentgroup:{application}/{deployment.group}"


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


HANDLERS["AWS::CodeDeploy::Application"] = {"create": create_application, "delete": lambda *_: None}
HANDLERS["AWS::CodeDeploy::DeploymentGroup"] = {"create": create_group, "update": update_group, "delete": delete_group}
router.SERVICE_PATTERNS["codedeploy"] = {"target_prefixes": [TARGET]}
app.SERVICE_HANDLERS["codedeploy"] = handle
iam_actions.SERVICE_TO_IAM_NAMESPACE["codedeploy"] = "codedeploy"
iam_actions.extract_resource_arn = partial(resource, iam_actions.extract_resource_arn)
