"""The resources of infra/data/template.yaml: which exist, and whether the data stack owns them."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import boto3
from botocore.exceptions import ClientError
from samcli.yamlhelper import yaml_parse

TEMPLATE = Path(__file__).resolve().parents[2] / "infra/data/template.yaml"
NAMES = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::S3::BucketPolicy": "Bucket",
    "AWS::SecretsManager::Secret": "Name",
}
# By these properties an import finds a resource.
IDENTIFIERS = NAMES | {"AWS::SQS::Queue": "QueueUrl", "AWS::SecretsManager::Secret": "Id"}
ABSENT = (
    "ResourceNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "NoSuchBucket",
    "NoSuchBucketPolicy",
    "404",
)


class Failed(Exception):
    """Nothing more can be done. The message is for the terminal."""


@dataclass
class Resource:
    """A resource of the data template."""

    id: str
    type: str
    name: str
    # What an import finds it by, and what Ref returns. `None` if it does not exist.
    physical: str | None = None
    # The data stack if that owns it, or `None`.
    owner: str | None = None
    # The properties with which it exists, of those that releases change.
    live: dict = field(default_factory=dict)

    def to_import(self) -> dict:
        identifier = {IDENTIFIERS[self.type]: self.physical}
        return {"ResourceType": self.type, "LogicalResourceId": self.id, "ResourceIdentifier": identifier}


class Aws:
    """The AWS account and region that the credentials lead to."""

    def __init__(self) -> None:
        session = boto3.Session()
        self.region = session.region_name
        if not self.region:
            raise Failed("no region: set AWS_REGION and AWS_DEFAULT_REGION")
        self.cloudformation = session.client("cloudformation", region_name=self.region)
        self.dynamodb = session.client("dynamodb", region_name=self.region)
        self.sqs = session.client("sqs", region_name=self.region)
        self.s3 = session.client("s3", region_name=self.region)
        self.secrets = session.client("secretsmanager", region_name=self.region)
        self.account = session.client("sts", region_name=self.region).get_caller_identity()["Account"]

    @cached_property
    def template(self) -> dict:
        return yaml_parse(TEMPLATE.read_text())

    def find(self, stack: str) -> list[Resource]:
        """Returns the resources of a stack's data, with what exists of them."""
        found = []
        for id, declared in self.template["Resources"].items():
            name = declared["Properties"][NAMES[declared["Type"]]]
            if "Ref" in name:
                name = self.template["Resources"][name["Ref"]]["Properties"]["BucketName"]
            values = {"Stack": stack, "AWS::AccountId": self.account, "AWS::Region": self.region}
            name = re.sub(r"\$\{([\w:]+)\}", lambda part: values[part[1]], name["Fn::Sub"])
            resource = Resource(id, declared["Type"], name)
            try:
                self.look_at(resource)
            except ClientError as error:
                if error.response["Error"]["Code"] not in ABSENT:
                    raise
            found.append(resource)
        data_stack = f"{stack}-data"
        owned = self.owned(data_stack)
        for resource in found:
            if owned.get(resource.id) == resource.type:
                resource.owner = data_stack
            elif resource.physical:
                self.refuse_owned(resource)
        return found

    def look_at(self, resource: Resource) -> None:
        name = resource.name
        match resource.type:
            case "AWS::DynamoDB::Table":
                table = self.dynamodb.describe_table(TableName=name)["Table"]
                resource.live = {"DeletionProtectionEnabled": table.get("DeletionProtectionEnabled", False)}
                resource.physical = name
            case "AWS::SQS::Queue":
                url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
                attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
                resource.live = queue_properties(name, attributes)
                resource.physical = url
            case "AWS::S3::Bucket":
                self.s3.head_bucket(Bucket=name)
                resource.physical = name
            case "AWS::S3::BucketPolicy":
                self.s3.get_bucket_policy(Bucket=name)
                resource.physical = name
            case "AWS::SecretsManager::Secret":
                secret = self.secrets.describe_secret(SecretId=name)
                if secret.get("DeletedDate"):
                    restore = f"aws secretsmanager restore-secret --secret-id {name}"
                    raise Failed(f"{name} is about to be deleted. Nothing was changed. Run: {restore}")
                resource.physical = secret["ARN"]

    def owned(self, stack: str) -> dict[str, str]:
        """Returns the types of a stack's resources, by their names in its template. There may be no such stack."""
        try:
            pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            listed = [one for page in pages for one in page["StackResourceSummaries"]]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return {}
            raise
        kept = [one for one in listed if one["ResourceStatus"] not in ("DELETE_COMPLETE", "DELETE_SKIPPED")]
        return {one["LogicalResourceId"]: one["ResourceType"] for one in kept}

    def refuse_owned(self, resource: Resource) -> None:
        """Fails if another stack than the data stack owns a resource."""
        try:
            answer = self.cloudformation.describe_stack_resources(PhysicalResourceId=resource.physical)
        except ClientError as error:
            # No stack owns it.
            if error.response["Error"]["Code"] == "ValidationError":
                return
            raise
        having = [one for one in answer["StackResources"] if one["ResourceType"] == resource.type]
        having = [one["StackName"] for one in having if one["PhysicalResourceId"] == resource.physical]
        if having:
            raise Failed(f"{having[0]}, another stack, owns {resource.name}. Nothing was changed")


def queue_properties(name: str, attributes: dict[str, str]) -> dict:
    """Returns a queue's attributes as properties of a template."""
    properties = {
        "QueueName": name,
        "MessageRetentionPeriod": int(attributes["MessageRetentionPeriod"]),
        "VisibilityTimeout": int(attributes["VisibilityTimeout"]),
        "SqsManagedSseEnabled": attributes.get("SqsManagedSseEnabled", "true") == "true",
    }
    if attributes.get("FifoQueue") == "true":
        properties["FifoQueue"] = True
    if policy := attributes.get("RedrivePolicy"):
        policy = json.loads(policy)
        properties["RedrivePolicy"] = policy | {"maxReceiveCount": int(policy["maxReceiveCount"])}
    return properties
