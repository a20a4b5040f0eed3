"""Resources of stacks. Without these corrections, ministack differs from AWS:

- It makes no routes from the body of an HTTP API, where SAM puts them.
- It does not report a table's indexes as active if a stack made the table, and leaves out time to live and recovery.
- It passes a number from a parameter as text to an event source, which needs a number, and makes one of a queue that does
  not exist.
- A reference to a secret gives its name instead of its ARN, and generated secrets hold punctuation in spite of
  `ExcludePunctuation`.
- It imports neither secrets nor bucket policies.
- It has no alarms on expressions. Here such an alarm watches a metric that does not exist.
"""

import json
from string import punctuation

from handlers import put_in
from ministack.services import apigateway, dynamodb, s3, secretsmanager, sqs


@put_in("AWS::ApiGatewayV2::Api")
def with_routes(create, logical_id, props, stack_name):
    api, attributes = create(logical_id, props, stack_name)
    for path, operations in props.get("Body", {}).get("paths", {}).items():
        for method, operation in operations.items():
            integrate(api, route_key(path, method), operation["x-amazon-apigateway-integration"])
    return api, attributes


@put_in("AWS::DynamoDB::Table")
def as_described(create, logical_id, props, stack_name):
    if indexes := props.get("GlobalSecondaryIndexes"):
        props = props | {"GlobalSecondaryIndexes": [index | {"IndexStatus": "ACTIVE"} for index in indexes]}
    made = create(logical_id, props, stack_name)
    dynamodb._update_ttl(props)
    dynamodb._update_continuous_backups(props)
    return made


@put_in("AWS::Lambda::EventSourceMapping")
def of_existing_queue(create, logical_id, props, stack_name):
    queue = props["EventSourceArn"].rsplit(":", 1)[-1]
    if not any(url.endswith(f"/{queue}") for url in sqs._queues):
        raise ValueError(f"The specified queue does not exist: {queue}")
    scaling = {name: int(value) for name, value in props.get("ScalingConfig", {}).items()}
    return create(logical_id, props | {"ScalingConfig": scaling}, stack_name)


@put_in("AWS::SecretsManager::Secret")
def with_arn(create, logical_id, props, stack_name):
    generated = props.get("GenerateSecretString", {})
    if generated.get("ExcludePunctuation"):
        props = props | {"GenerateSecretString": generated | {"ExcludeCharacters": punctuation}}
    _, attributes = create(logical_id, props, stack_name)
    return attributes["Arn"], attributes


@put_in("AWS::SecretsManager::Secret", "update")
def found_by_arn(update, arn, old, new, stack_name, logical_id=None):
    _, attributes = update(secret_name(arn), old, new, stack_name, logical_id)
    return arn, attributes


@put_in("AWS::SecretsManager::Secret", "delete")
def deleted_by_arn(delete, arn, props):
    delete(secret_name(arn), props)


@put_in("AWS::SecretsManager::Secret", "import")
def secret_by_arn(_, identifier):
    arn = secretsmanager._secrets[secret_name(identifier["Id"])]["ARN"]
    return arn, {"Id": arn, "Arn": arn}


@put_in("AWS::S3::BucketPolicy", "import")
def policy_by_bucket(_, identifier):
    bucket = identifier["Bucket"]
    if bucket not in s3._bucket_policies:
        raise ValueError(f"bucket {bucket} has no policy")
    return f"{bucket}-policy", {}


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


def secret_name(arn):
    """Returns a secret's name from its ARN, which ends with the name, a hyphen and six random characters."""
    return arn.rsplit(":", 1)[-1][:-7]
