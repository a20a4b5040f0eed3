"""How soon the API answers: the first requests after a deployment, and the ones after them."""

import json
import re
import time
from statistics import median

from client import Client, at_once
from report import Report
from stack import ROOT, Failed, Stack

UUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
SCOPES = ("catalog:read", "listings:read", "orders:read", "wallet:read")
# More requests per minute than this test makes with the key.
KEY_LIMIT = 60_000
# Requests that come at once, so that each starts an instance. A new account runs ten functions at once.
COLD = 5
WARM = 50
# Seconds after which a log line is there.
LOG_SECONDS = 120


def paths() -> dict[str, str]:
    """Returns a path of each function that has a route in the template. An id that is not there is answered with 404,
    after the same work."""
    found, function = {}, ""
    for line in (ROOT / "template.yaml").read_text().splitlines():
        if name := re.search(r"FunctionName: !Sub \$\{AWS::StackName}-(\w+)", line):
            function = name[1]
        if path := re.search(r'ApiId: .* Path: "?([^" ]+)', line):
            found[function] = re.sub(r"\{\w+}", UUID, path[1])
    return found


PATHS = paths()


def make_key(stack: Stack) -> str:
    scopes = (part for scope in SCOPES for part in ("--scope", scope))
    made = stack.marketctl("keys", "create", "--user", UUID, *scopes)
    stack.marketctl("keys", "update", made["key_id"], "--limit", str(KEY_LIMIT))
    return made["api_key"]


def measure(stack: Stack, report: Report, key: str) -> None:
    base_url = stack.output("BaseUrl")
    for function, path in PATHS.items():
        clients = [Client(base_url, key) for _ in range(COLD)]
        at_once(clients, Client.connect)
        cold = answered(function, at_once(clients, lambda client: client.get(path)))
        warm = answered(function, [clients[0].get(path) for _ in range(WARM)])
        report.add(f"`{function}`, slowest of {COLD} at once after the deployment, ms", max(cold))
        report.add(f"`{function}`, warm, median of {WARM}, ms", median(warm))


def answered(function: str, answers: list[tuple[int, float]]) -> list[float]:
    """Returns the times of answers. Fails if one of them is no answer of the function."""
    if wrong := sorted({status for status, _ in answers if status not in (200, 404)}):
        raise Failed(f"{function} answered with {wrong}")
    return [milliseconds for _, milliseconds in answers]


def measure_inits(stack: Stack, report: Report) -> None:
    """Reads what each instance logged in its first line."""
    starts: dict[str, list[dict]] = {}
    deadline = time.monotonic() + LOG_SECONDS
    while not starts and time.monotonic() < deadline:
        starts = logged_starts(stack)
        time.sleep(0 if starts else 5)
    if not starts:
        raise Failed("no log line has an init_ms")
    for function, lines in sorted(starts.items()):
        times = [line["init_ms"] for line in lines]
        report.add(f"`{function}`, instances", len(lines))
        report.add(f"`{function}`, median of `init_ms`", median(times))
        report.add(f"`{function}`, longest `init_ms`", max(times))
        memory = [line["max_memory_mb"] for line in lines if "max_memory_mb" in line]
        report.add(f"`{function}`, most memory in a first line, MB", max(memory, default="none"))


def logged_starts(stack: Stack) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    pages = stack.client("logs").get_paginator("filter_log_events")
    for page in pages.paginate(logGroupName=f"/aws/lambda/{stack.name}", filterPattern='"init_ms"'):
        for event in page["events"]:
            try:
                line = json.loads(event["message"])
            except ValueError:
                continue
            if "init_ms" in line:
                found.setdefault(line.get("FunctionName", "unknown").removeprefix(f"{stack.name}-"), []).append(line)
    return found
