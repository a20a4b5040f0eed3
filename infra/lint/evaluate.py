"""Makes requests to the roles of the delivery pipeline and of the functions, and judges them as AWS does.

requests.yaml lists them, with those that must be allowed and those that must be refused. AWS's schemas add what
CloudFormation calls to make, change, read and remove a resource of each type. SAM's own library fills in the values of
the templates, and the evaluation is that of ministack, the AWS emulator of infra/deployed. Policies that AWS manages
are left out: log lines, network interfaces and traces.

usage: evaluate.py REQUESTS RIGHTS EXPANDED_TEMPLATE...
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from ministack.core.iam_evaluator import EvalContext, ParsedStatement, evaluate, parse_policy_document
from samcli.lib.intrinsic_resolver.intrinsic_property_resolver import IntrinsicResolver
from samcli.lib.intrinsic_resolver.intrinsics_symbol_table import IntrinsicsSymbolTable

from rights import actions_of, needs, without

ACCOUNT, REGION = "111111111111", "us-east-1"
# Region and account in the ARNs of services that lack one of them.
PLACES = {"s3": ":", "route53": ":", "iam": f":{ACCOUNT}", "budgets": f":{ACCOUNT}", "apigateway": f"{REGION}:"}
# The beginnings of keys that requests.yaml abbreviates.
SHORT = {"github": "token.actions.githubusercontent.com:", "records": "route53:ChangeResourceRecordSets"}
ANYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}


def main() -> None:
    wanted, rights, *templates = sys.argv[1:]
    wanted, rights = (yaml.safe_load(Path(path).read_text()) for path in (wanted, rights))
    account = Account(templates, wanted["parameters"])
    judged = list(judge(account, wanted))
    for variant in wanted["variants"]:
        judged += judge(Account(templates, wanted["parameters"] | variant["parameters"]), variant)
    for kind, request in wanted["handled"].items():
        resources, *context = request.split()
        places = (*resources.split(","), "*")
        for action in handled(kind, rights):
            right = any(account.allows("Execution", action, on, *context) for on in places)
            judged.append((right, f"Execution must be allowed {action} on {resources}, for {kind}"))
    if wrong := [f"requests.yaml: {request}" for right, request in judged if not right]:
        sys.exit("\n".join(wrong))
    print(f"{len(judged)} requests: each is allowed or refused as it must be")


def judge(account: "Account", case: dict) -> Iterator[tuple[bool, str]]:
    """Makes the requests of a case. Returns whether each was decided as it must be."""
    for decision in ("allowed", "refused"):
        for key, requests in case[decision].items():
            caller, *common = key.split()
            for actions, resource, *context in map(str.split, requests):
                for action in actions.split(","):
                    allowed = account.allows(caller, action, resource, *common, *context)
                    whole = " ".join([action, resource, *context])
                    yield allowed == (decision == "allowed"), f"{caller} must be {decision} {whole}"


class Account:
    """An account with the roles of some templates."""

    def __init__(self, templates: list[str], parameters: dict[str, str]) -> None:
        given = [filled(Path(path), parameters) for path in templates]
        resources = {name: resource for template in given for name, resource in template["Resources"].items()}
        self.policies: dict[str, list[ParsedStatement]] = {}
        for name, resource in resources.items():
            if resource["Type"] == "AWS::IAM::ManagedPolicy":
                statements = parse_policy_document(resource["Properties"]["PolicyDocument"])
                named = resource["Properties"].get("ManagedPolicyName")
                self.policies |= {name: statements, arn("iam", f"policy/{named}"): statements}
        roles = {name: each["Properties"] for name, each in resources.items() if each["Type"] == "AWS::IAM::Role"}
        # A template can give a function any policy, within the boundary.
        bounded = {"PermissionsBoundary": "Boundary", "Policies": [{"PolicyDocument": ANYTHING}]}
        self.roles = roles | {"AnyFunction": bounded}

    def allows(self, caller: str, action: str, resource: str, *context: str) -> bool:
        """Returns whether AWS would let a role or a service do this. The context is in the form KEY=VALUE,VALUE…"""
        keys = {"aws:resourceaccount": ACCOUNT}
        for key, value in (each.split("=", 1) for each in context):
            service, _, name = key.partition(":")
            key = f"{SHORT.get(service, service + ':')}{name}".lower()
            value = arn("iam", value) if value.startswith("policy/") else value
            keys[key] = value.split(",") if "," in value else value
        takes_role = action.startswith("sts:AssumeRole")
        request = EvalContext(
            principal_arn=caller,
            principal_type="",
            # The library takes it for the resource's account, too.
            principal_account=keys["aws:resourceaccount"],
            action=action,
            resource_arn="*" if takes_role else arn(action.split(":")[0], resource),
            region=REGION,
            service_context=keys,
        )
        layers = self.trust(caller, resource) if takes_role else self.layers(caller)
        return evaluate(request, *layers).decision == "Allow"

    def layers(self, caller: str) -> Iterator[list[list[ParsedStatement]]]:
        """Returns the policies of a role, and its boundary."""
        role = self.roles[caller]
        own = [parse_policy_document(one["PolicyDocument"]) for one in role.get("Policies", [])]
        yield own + [self.policies[name] for name in role.get("ManagedPolicyArns", []) if name in self.policies]
        if "PermissionsBoundary" in role:
            yield [self.policies[role["PermissionsBoundary"]]]

    def trust(self, caller: str, name: str) -> Iterator[list[list[ParsedStatement]]]:
        """Returns what a role's trust policy says of a caller."""
        statements = self.roles[name]["AssumeRolePolicyDocument"]["Statement"]
        about = [each | {"Resource": "*"} for each in statements if caller in json.dumps(each["Principal"])]
        yield [parse_policy_document({"Statement": about})]


def filled(path: Path, parameters: dict[str, str]) -> dict:
    """Returns a template with the values of its parameters. A reference to a resource becomes the resource's name."""
    template = json.loads(path.read_text())
    names = {name: name for name in template["Resources"]}
    names |= {name: value for name, value in parameters.items() if name in template.get("Parameters", {})}
    names |= {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::StackName": parameters["Stack"]}
    names["AWS::NoValue"] = "none"
    symbols = IntrinsicsSymbolTable(template=template, logical_id_translator=names)
    return IntrinsicResolver(template=template, symbol_resolver=symbols).resolve_template(ignore_errors=True)


def handled(kind: str, rights: dict) -> Iterator[str]:
    """Returns the actions of a type's own service that CloudFormation needs for it."""
    service = {"apigatewayv2": "apigateway"}.get(name := kind.split("::")[1].lower(), name)
    for actions in needs({kind}, rights["also"]).values():
        yield from (each for each in without(actions, actions_of(rights["unneeded"])) if each.startswith(f"{service}:"))


def arn(service: str, name: str) -> str:
    whole = name == "*" or name.startswith("arn:")
    return name if whole else f"arn:aws:{service}:{PLACES.get(service, f'{REGION}:{ACCOUNT}')}:{name}"


main()
