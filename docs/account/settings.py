"""Makes a key and a webhook endpoint for a user: python3 settings.py FUNCTION USER_ID URL"""

import json
import sys

import boto3
from botocore.config import Config

# One attempt, because a command that is sent again may be done twice.
CLIENT = boto3.client("lambda", config=Config(retries={"total_max_attempts": 1}))


class Refused(Exception):
    """The command was not done. `code` says why."""

    def __init__(self, error: dict):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


def settings(function: str, user_id: str, command: str, parameters: dict) -> dict:
    """Returns the result of a command. After any exception but Refused, nobody knows whether it was done."""
    request = {"version": 1, "user_id": user_id, "command": command, "parameters": parameters}
    reply = CLIENT.invoke(FunctionName=function, Payload=json.dumps(request).encode())
    answer = json.load(reply["Payload"])
    if "FunctionError" in reply:
        raise RuntimeError(f"no answer to {command}")
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["result"]


def main() -> None:
    function, user_id, url = sys.argv[1:]
    key = settings(function, user_id, "keys.create", {"name": "My program", "scopes": ["orders:read"]})
    # Show key["api_key"] to the user, this one time. Never log it.
    endpoint = settings(function, user_id, "endpoints.add", {"url": url, "events": ["order.completed"]})
    # The same is true of endpoint["secret"].
    listed = settings(function, user_id, "deliveries.list", {"endpoint_id": endpoint["id"]})
    print(f"key {key['key_id']}, endpoint {endpoint['id']}, deliveries: {len(listed['deliveries'])}")


if __name__ == "__main__":
    main()
