"""Runs ministack with corrections. cloud.py starts it with the Python that has ministack installed.

Without them, ministack differs from AWS:

- It makes no routes from the body of an HTTP API, where SAM puts them.
- It does not report a table's indexes as active if a stack made the table.
- It passes a number from a parameter as text to an event source, which needs a number.
- A reference to a secret gives its name instead of its ARN, and generated secrets hold punctuation in spite of
  `ExcludePunctuation`.
- It asks for separate permissions for SQS batches. In AWS the permissions for single messages include them.
- It has no alarms on expressions. Here such an alarm watches a metric that does not exist.
- It is reached without TLS, which the bucket's policy refuses. Here every call counts as encrypted.
"""

import json
from functools import partial
from string import punctuation

from ministack import app
from ministack.core import iam_actions
from ministack.services import apigateway
from ministack.services.cloudformation import provisioners

HANDLERS = provisioners._RESOURCE_HANDLERS


def put_in(kind):
    """Makes the decorated function create resources of a kind. Its first argument is ministack's own function."""

    def put(function):
        handler = HANDLERS[kind]
        handler["create"] = partial(function, handler["create"])

    return put


@put_in("AWS::ApiGatewayV2::Api")
def with_routes(create, logical_id, props, stack_name):
    api, attributes = create(logical_id, props, stack_name)
    for path, operations in props.get("Body", {}).get("paths", {}).items():
        for method, operation in operations.items():
            integrate(api, route_key(path, method), operation["x-amazon-apigateway-integration"])
    return api, attributes


@put_in("AWS::DynamoDB::Table")
def with_active_indexes(create, logical_id, props, stack_name):
    for index in props.get("GlobalSecondaryIndexes", []):
        index["IndexStatus"] = "ACTIVE"
    return create(logical_id, props, stack_name)


@put_in("AWS::Lambda::EventSourceMapping")
def with_numbers(create, logical_id, props, stack_name):
    scaling = {name: int(value) for name, value in props.get("ScalingConfig", {}).items()}
    return create(logical_id, props | {"ScalingConfig": scaling}, stack_name)


@put_in("AWS::SecretsManager::Secret")
def with_arn(create, logical_id, props, stack_name):
    generated = props.get("GenerateSecretString", {})
    if generated.get("ExcludePunctuation"):
        generated["ExcludeCharacters"] = punctuation
    _, attributes = create(logical_id, props, stack_name)
    return attributes["Arn"], attributes


@put_in("AWS::CloudWatch::Alarm")
def without_expression(create, logical_id, props, stack_name):
    if "Metrics" in props:
        props = {name: value for name, value in props.items() if name != "Metrics"}
        props |= {"Namespace": "Unknown", "MetricName": logical_id}
    return create(logical_id, props, stack_name)


def route_key(path, method):
    """Returns a route's key. SAM writes ANY and the default route as extensions of OpenAPI."""
    method = {"x-amazon-apigateway-any-method": "ANY"}.get(method, method.upper())
    return path if path == "$default" else f"{method} {path}"


def integrate(api, key, integration):
    described = {"integrationType": integration["type"].upper(), "integrationUri": integration["uri"]}
    described["payloadFormatVersion"] = integration["payloadFormatVersion"]
    _, _, made = apigateway._create_integration(api, described)
    target = f"integrations/{json.loads(made)['integrationId']}"
    apigateway._create_route(api, {"routeKey": key, "target": target})


def without_batch(action_of, headers):
    """Returns the permission that a request needs."""
    action = action_of(headers)
    return action.removesuffix("Batch") if headers.get("x-amz-target", "").startswith("AmazonSQS.") else action


def as_encrypted(pin, address, _):
    pin(address, True)


iam_actions._action_from_target = partial(without_batch, iam_actions._action_from_target)
app.pin_request_origin = partial(as_encrypted, app.pin_request_origin)

if __name__ == "__main__":
    app.main()

