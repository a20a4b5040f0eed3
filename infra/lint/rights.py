"""Makes requests to the roles of the delivery pipeline and of the functions, and judges them as AWS does.

rights.yaml lists those that must be allowed and those that must be refused. SAM's own library fills in the values of the
templates, and the evaluation is that of ministack, the AWS emulator of infra/deployed. Policies that AWS manages are left
out.

usage: rights.py REQUESTS EXPANDED_TEMPLATE...
"""

import json
import sys
from pathlib import Path

import yaml
from ministack.core.iam_evaluator import EvalContext, evaluate, evaluate_trust_policy, parse_policy_document
from samcli.lib.intrinsic_resolver.intrinsic_property_resolver import IntrinsicResolver
from samcli.lib.intrinsic_resolver.intrinsics_symbol_table import IntrinsicsSymbolTable

ACCOUNT, REGION = "111111111111", "us-east-1"
# Region and account in the ARNs of services that lack one of them.
PLACES = {"s3": ":", "route53": ":", "iam": f":{ACCOUNT}", "apigateway": f"{REGION}:"}
GITHUB = "token.actions.githubusercontent.com"
# A template can give a function any policy, within the boundary.
ANYTHING = [{"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}}]


def main() -> None:
    wanted, templates = yaml.safe_load(Path(sys.argv[1]).read_text()), sys.argv[2:]
    made, wrong = 0, []
    for decision in ("allowed", "refused"):
        for key, requests in wanted[decision].items():
            caller, *changed = key.split()
            roles = filled(templates, wanted["parameters"] | dict(one.split("=") for one in changed))
            for actions, resource, *context in map(str.split, requests):
                for action in actions.split(","):
                    made += 1
                    if allows(roles, caller, action, resource, context) != (decision == "allowed"):
                        wrong.append(f"{key} must be {decision} {' '.join([action, resource, *context])}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{made} requests: each is allowed or refused as it must be")


def filled(templates: list[str], parameters: dict[str, str]) -> dict[str, dict]:
    """Returns the roles of the templates. A reference to a resource becomes its name, one to the boundary its ARN."""
    resources = {}
    for template in (json.loads(Path(path).read_text()) for path in templates):
        names = {name: name for name in template["Resources"]} | {"AWS::NoValue": "none"}
        names |= {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::StackName": parameters["Stack"]}
        names |= {"Boundary": parameters["PermissionsBoundary"]}
        for name, declared in template.get("Parameters", {}).items():
            if (value := parameters.get(name)) is not None:
                names[name] = value.split(",") if declared["Type"] == "CommaDelimitedList" else value
        symbols = IntrinsicsSymbolTable(template=template, logical_id_translator=names)
        resolver = IntrinsicResolver(template=template, symbol_resolver=symbols)
        resources |= resolver.resolve_template(ignore_errors=True)["Resources"]
    roles = {name: each["Properties"] for name, each in resources.items() if each["Type"] == "AWS::IAM::Role"}
    roles["AnyFunction"] = {"Policies": ANYTHING, "PermissionsBoundary": parameters["PermissionsBoundary"]}
    for role in roles.values():
        layers = [role.get("Policies", [])]
        if "PermissionsBoundary" in role:
            layers.append([resources[role["PermissionsBoundary"]]["Properties"]])
        role["Layers"] = [[parse_policy_document(one["PolicyDocument"]) for one in layer] for layer in layers]
    return roles


def allows(roles: dict[str, dict], caller: str, action: str, resource: str, context: list[str]) -> bool:
    """Returns whether AWS would let a role or GitHub do this. The context is in the form KEY=VALUE,VALUE…"""
    keys = {f"{GITHUB}:aud": "sts.amazonaws.com"}
    for key, value in (each.split("=", 1) for each in context):
        keys[key.replace("github", GITHUB).lower()] = value.split(",") if "," in value else value
    if resource != "*" and not resource.startswith("arn:"):
        service = action.split(":")[0]
        resource = f"arn:aws:{service}:{PLACES.get(service, f'{REGION}:{ACCOUNT}')}:{resource}"
    request = EvalContext(caller, "", ACCOUNT, action, resource, REGION, service_context=keys)
    if caller == "GitHub":
        role = roles[resource.rsplit(":", 1)[-1]]
        return evaluate_trust_policy(role["AssumeRolePolicyDocument"], caller, request)
    return evaluate(request, *roles[caller]["Layers"]).decision == "Allow"


main()
