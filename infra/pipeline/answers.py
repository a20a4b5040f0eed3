"""Makes two requests to a deployed API: for its description, and for a key's account without a key.

Functions answer both, and not the gateway by itself. The address is the output BaseUrl of the stack, or
MARKETPLACE_BASE_URL.

usage: answers.py STACK
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import boto3

# An API that was made a moment ago may not answer everywhere yet.
TRIES = 5
PAUSE_SECONDS = 3


def main() -> None:
    [stack] = sys.argv[1:]
    base_url = os.environ.get("MARKETPLACE_BASE_URL") or output(stack, "BaseUrl")
    expect(f"{base_url}/v1/openapi.json", 200, lambda body: body["openapi"].startswith("3.1"))
    expect(f"{base_url}/v1/public/me", 401, lambda body: body["error"]["code"] == "api_keys.missing")
    print(f"{base_url} answers")


def output(stack: str, name: str) -> str:
    [found] = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return next(one["OutputValue"] for one in found["Outputs"] if one["OutputKey"] == name)


def expect(url: str, status: int, is_right: Callable[[dict], bool]) -> None:
    """Ends the program if the address does not answer with this status and a right body."""
    for remaining in reversed(range(TRIES)):
        found = answer(url)
        try:
            if found[0] == status and is_right(json.loads(found[1])):
                return
        except (KeyError, TypeError, ValueError):
            pass
        if remaining:
            time.sleep(PAUSE_SECONDS)
    sys.exit(f"answers: {url} answered {found[0]}, not {status} with the expected body: {found[1][:200]}")


def answer(url: str) -> tuple[int | None, str]:
    """Returns the status and the body. There is no status if nothing answered."""
    try:
        with urllib.request.urlopen(url, timeout=30) as found:
            return found.status, found.read().decode(errors="replace")
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode(errors="replace")
    except OSError as failure:
        return None, str(failure)


main()
