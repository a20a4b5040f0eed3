"""Compares what the delivery pipeline may do with what the templates need, both ways.

AWS's schema of each resource type lists the actions that CloudFormation calls to make, change, read and remove it.
cfn-lint brings these schemas. rights.yaml corrects them. The policies are those of infra/pipeline/policy.yaml:

- `Execution…`: what CloudFormation may do during a deployment
- `Reads`: what the role that looks for drift may read
- `Boundary`: the most that a function may ever be allowed

usage: rights.py POLICY SETTINGS EXPANDED_TEMPLATE...
"""

import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import cfnlint
import yaml

# An administrator deploys these: the pipeline's own templates, and the edge and the probe, which seldom change.
BY_HAND = ("infra-pipeline-", "infra-edge-", "infra-monitoring-probe.")


def main() -> None:
    policy, settings, *templates = sys.argv[1:]
    policies = json.loads(Path(policy).read_text())["Resources"]
    settings = yaml.safe_load(Path(settings).read_text())
    delivered = [Path(path) for path in templates if not Path(path).name.startswith(BY_HAND)]
    deployed = [json.loads(path.read_text()) for path in delivered]
    # The pipeline gives the service a boundary and a role for CodeDeploy, so the service makes neither.
    made = (resource for template in deployed for resource in template["Resources"].values())
    given = ("MakesBoundary", "MakesCodeDeployRole")
    resources = [resource for resource in made if resource.get("Condition") not in given]
    handlers = needs({resource["Type"] for resource in resources}, settings["also"])
    listed = {action for actions in handlers.values() for action in actions}
    unneeded, contents = actions_of(settings["unneeded"]), actions_of(settings["contents"])
    # A handler reads every property that its type has, whether or not a template sets it.
    reads = without(handlers["read"], contents)
    needed = without(listed, unneeded) | reads
    wrong = [f"rights.yaml: {one}: nothing needs it anyway" for one in stale(unneeded, listed)]
    wrong += [f"rights.yaml: {one}: nothing reads it anyway" for one in stale(contents, handlers["read"])]
    wrong += [f"rights.yaml: {one} has no reason or no source" for one in unsourced(settings)]
    execution = [name for name in policies if name.startswith("ExecutionOf")]
    wrong += compare("Execution", statements(policies, execution), needed)
    wrong += compare("Reads", statements(policies, ["Reads"]), reads | DRIFT)
    wrong += compare("Boundary", statements(policies, ["Boundary"]), functions(resources))
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(needed)} actions of deployments, {len(reads)} of drift detection: all allowed, and no others")


# What looks for drift calls itself.
DRIFT = {
    "cloudformation:batchdescribetypeconfigurations",
    "cloudformation:describestackdriftdetectionstatus",
    "cloudformation:describestackresourcedrifts",
    "cloudformation:describestacks",
    "cloudformation:detectstackdrift",
    "cloudformation:detectstackresourcedrift",
    "cloudformation:liststackresources",
}
# What the managed policies of functions allow and their boundary leaves: log lines, network interfaces and traces.
MANAGED = {
    "AWSLambdaBasicExecutionRole": ["logs:CreateLogStream", "logs:PutLogEvents"],
    "AWSLambdaVPCAccessExecutionRole": [
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
    ],
    "AWSXRayDaemonWriteAccess": [
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    ],
}


# What the policies of the keys aws/dynamodb, aws/lambda and aws/secretsmanager allow everybody in the account who calls
# through the service. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
#
# A boundary may or may not limit what a policy of a resource allows: AWS's documentation has cases of both.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html
KEYS = [
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
]


def needs(types: set[str], also: dict[str, list[dict]]) -> dict[str, set[str]]:
    """Returns the actions of each handler (`create`, `read`, …) that the types need together."""
    found = {"also": {action.lower() for name in types for action in actions_of(also.get(name, []))}}
    unknown = set(types)
    for path in (Path(cfnlint.__file__).parent / "data/schemas/resources").glob("*.json"):
        schema = json.loads(path.read_text())
        if schema["typeName"] in types and "handlers" in schema:
            unknown.discard(schema["typeName"])
            for name, handler in schema["handlers"].items():
                found.setdefault(name, set()).update(action.lower() for action in handler.get("permissions", []))
    if unknown - also.keys():
        sys.exit(f"rights.yaml must list under `also` what these need: {', '.join(sorted(unknown - also.keys()))}")
    return found


def actions_of(entries: list[dict]) -> list[str]:
    return [action for entry in entries for action in entry["actions"]]


def unsourced(settings: dict) -> list[str]:
    """Returns the entries that nobody could check."""
    sections = [*settings["also"].values(), *(settings[name] for name in settings if name != "also")]
    entries = [entry for section in sections for entry in section]
    bad = [one for one in entries if not one.get("why") or not one.get("source", "").startswith("https://")]
    return [", ".join(entry["actions"]) for entry in bad]


def functions(resources: list[dict]) -> set[str]:
    """Returns the actions that functions need: what their roles allow, and what services do for them."""
    actions = {*MANAGED["AWSXRayDaemonWriteAccess"], *KEYS}
    for role in (resource["Properties"] for resource in resources if resource["Type"] == "AWS::IAM::Role"):
        if "lambda.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"]):
            for name, managed in MANAGED.items():
                actions.update(managed if name in json.dumps(role.get("ManagedPolicyArns", [])) else [])
            for one in role.get("Policies", []):
                one = one.get("Fn::If", [None, one])[1]
                allowed = [each for each in one["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
                actions.update(action for statement in allowed for action in listed_in(statement))
    return {action.lower() for action in actions}


def statements(policies: dict, names: list[str]) -> set[str]:
    """Returns the patterns of actions that the policies allow."""
    allowed = [each for name in names for each in policies[name]["Properties"]["PolicyDocument"]["Statement"]]
    return {action.lower() for each in allowed if each["Effect"] == "Allow" for action in listed_in(each)}


def listed_in(statement: dict) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else action


def without(actions: set[str], patterns: list[str]) -> set[str]:
    return {action for action in actions if not any(fnmatchcase(action, one.lower()) for one in patterns)}


def stale(patterns: list[str] | set[str], actions: set[str]) -> list[str]:
    return sorted(one for one in patterns if not any(fnmatchcase(action, one.lower()) for action in actions))


def compare(name: str, allowed: set[str], needed: set[str]) -> list[str]:
    missing = [f"policy.yaml: {name} lacks {action}" for action in sorted(without(needed, list(allowed)))]
    return missing + [f"policy.yaml: {name} allows {one}, which nothing needs" for one in stale(allowed, needed)]


if __name__ == "__main__":
    main()
