"""Gets credentials of an AWS role for the steps that follow in a job of GitHub Actions.

GitHub signs a token that says which repository and environment the job belongs to. AWS exchanges it for credentials
that end after some time. role.yaml says whose tokens the role trusts, and how long it may be had for.

usage: sign_in.py ROLE SECONDS
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

import boto3

AUDIENCE = "sts.amazonaws.com"


def main() -> None:
    role, seconds = sys.argv[1:]
    given = boto3.client("sts").assume_role_with_web_identity(
        RoleArn=role,
        RoleSessionName=f"delivery-{os.environ['GITHUB_RUN_ID']}",
        WebIdentityToken=token(),
        DurationSeconds=int(seconds),
    )["Credentials"]
    variables = {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
    with Path(os.environ["GITHUB_ENV"]).open("a") as file:
        for name, value in variables.items():
            # GitHub blots out masked values in all logs that follow.
            print(f"::add-mask::{value}")
            file.write(f"{name}={value}\n")
    print(f"signed in as {role} until {given['Expiration']:%H:%M:%S} UTC")


def token() -> str:
    url = f"{os.environ['ACTIONS_ID_TOKEN_REQUEST_URL']}&audience={AUDIENCE}"
    headers = {"Authorization": f"Bearer {os.environ['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return json.load(answer)["value"]


main()
