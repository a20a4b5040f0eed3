"""Aliases of functions. Without these corrections, ministack differs from AWS:

- It sends all requests to an alias's main version, whatever its weights are.
- It ignores an alias's `UpdatePolicy`. Here CodeDeploy moves the alias: it calls the hook, shifts the traffic, and
  watches the alarms. A stack's deployments come one after the other, in AWS all at once.
"""

import logging
import time
from collections import Counter
from functools import partial

from codedeploy import Deployment
from handlers import put_in
from ministack.services import lambda_svc
from ministack.services.cloudformation import _stacks, changesets, engine, stacks

# Seconds that a hook has to report. In AWS it has an hour.
HOOK_SECONDS = 180
LOGGER = logging.getLogger("codedeploy")
# UpdatePolicy of aliases, by the names of their stack and in the template.
POLICIES: dict[tuple[str, str], dict] = {}
# For each alias with weights, the requests that each version has had since they were set.
REQUESTS: dict[str, Counter] = {}


class Refused(ValueError):
    """A deployment failed. The alias is at its old version."""


def with_policies(deploy, stack_name, stack_id, template, *arguments, **options):
    """Notes the aliases' policies. An alias is updated after the resources that its policy names."""
    for logical_id, resource in template["Resources"].items():
        policy = resource.get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if resource["Type"] == "AWS::Lambda::Alias" and policy:
            POLICIES[stack_name, logical_id] = policy
            named = {name for name, _ in engine._intrinsic_references(policy)}
            resource["DependsOn"] = sorted(named.union(listed(resource.get("DependsOn", []))))
    return deploy(stack_name, stack_id, template, *arguments, **options)


def listed(names):
    return [names] if isinstance(names, str) else names


@put_in("AWS::Lambda::Alias", "update")
def gradually(update, arn, old, new, stack_name, logical_id=None):
    policy = POLICIES.get((stack_name, logical_id))
    if policy and old["FunctionVersion"] != new["FunctionVersion"]:
        group, hook = (
            _stacks[stack_name]["_resources"][first_named(policy[name])]["PhysicalResourceId"]
            for name in ("DeploymentGroupName", "BeforeAllowTrafficHook")
        )
        versions = old["FunctionVersion"], new["FunctionVersion"]
        deploy(new["FunctionName"], new["Name"], versions, hook, Deployment(group, creator(stack_name)))
    return update(arn, old, new, stack_name, logical_id)


def first_named(value):
    """Returns the resource that a policy names. If it selects one from a list, that is the first."""
    return value["Ref"] if "Ref" in value else first_named(value["Fn::Select"][1][0])


def creator(stack_name):
    returning = "ROLLBACK" in _stacks[stack_name]["StackStatus"]
    return "CloudFormationRollback" if returning else "CloudFormation"


def deploy(function, alias, versions, hook, deployment):
    """Moves an alias from one version to the other. Leaves the last step, the main version, to the caller."""
    name = f"{function}:{alias} from version {versions[0]} to {versions[1]}"
    try:
        ask(hook, deployment)
        LOGGER.info("%s: the hook reported %s", name, deployment.hook_status)
        if deployment.hook_status != "Succeeded":
            raise Refused("the hook refused")
        for share, seconds in deployment.shifts():
            LOGGER.info("%s: %s of the requests", name, f"{share:.0%}")
            shift(function, alias, versions[1], share)
            wait(deployment, seconds)
            requests = REQUESTS[f"{function}:{alias}"]
            LOGGER.info("%s: had %d of %d", name, requests[versions[1]], requests.total())
    except Refused as refused:
        deployment.status = "Failed"
        LOGGER.info("%s: failed, %s", name, refused)
        raise
    finally:
        shift(function, alias, versions[1], None)
    deployment.status = "Succeeded"
    LOGGER.info("%s: 100%% of the requests", name)


def ask(hook, deployment):
    """Invokes the hook as CodeDeploy does, and waits for its report."""
    event = {"DeploymentId": deployment.id, "LifecycleEventHookExecutionId": deployment.execution_id}
    function, _ = lambda_svc._get_func_record_for_qualifier(hook, None)
    lambda_svc.invoke_async_with_retry(function, event)
    if not wait(deployment, HOOK_SECONDS, lambda: deployment.hook_status):
        raise Refused("the hook did not report")


def shift(function, alias, version, share):
    """Sets the share of requests that a version gets beside the main one. With none, it gets no requests."""
    REQUESTS[f"{function}:{alias}"] = Counter()
    weights = {"AdditionalVersionWeights": {version: share} if share else {}}
    status, _, body = lambda_svc._update_alias(function, alias, {"RoutingConfig": weights})
    if status >= 400:
        raise Refused(body.decode())


def wait(deployment, seconds, is_done=lambda: False):
    """Waits, watching the alarms. Returns whether it was done before the time was up."""
    begun = time.monotonic()
    while not is_done():
        if alarm := deployment.ringing_alarm():
            raise Refused(f"alarm {alarm} went off")
        if time.monotonic() - begun > seconds:
            return False
        time.sleep(0.1)
    return True


def by_weight(record_of, function, qualifier):
    """Returns the version that the next request to a function goes to."""
    alias = ((function or {}).get("aliases") or {}).get(qualifier)
    weights = ((alias or {}).get("RoutingConfig") or {}).get("AdditionalVersionWeights")
    return record_of(function, next_version(function, alias, weights) if weights else qualifier)


def next_version(function, alias, weights):
    """Takes the versions in turns: of every ten requests, one goes to a version with a weight of 0.1."""
    requests = REQUESTS[f"{function['config']['FunctionName']}:{alias['Name']}"]
    total = requests.total() + 1
    behind = (version for version, share in weights.items() if requests[version] + 1 <= share * total)
    version = next(behind, alias["FunctionVersion"])
    requests[version] += 1
    return version


def runs_on_worker_thread(original, kind):
    """A deployment waits, which must not hold up everything else."""
    return kind == "AWS::Lambda::Alias" or original(kind)


changesets._deploy_stack_async = partial(with_policies, changesets._deploy_stack_async)
stacks._runs_on_worker_thread = partial(runs_on_worker_thread, stacks._runs_on_worker_thread)
lambda_svc._effective_func_record_for_qualifier = partial(by_weight, lambda_svc._effective_func_record_for_qualifier)
