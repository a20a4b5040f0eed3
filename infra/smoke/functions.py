"""What each route answers, and how each function starts."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from client import get
from report import Report
from stack import PROGRAMS, Failed, Stack, is_aws

# A catalog without data knows no item and no prices.
EXPECTED = (200, 404)
# Seconds until a line can be found in a log group.
DELAY = 60 if is_aws() else 0
HOOK = "CodeDeployHook_"


def routes(stack: Stack, report: Report, key: str) -> None:
    """Makes one request to each route of the API's description."""
    base_url = stack.output("BaseUrl")
    status, body = get(base_url, "/v1/openapi.json", key)
    if status != 200:
        raise Failed(f"the API's description was answered with {status}")
    wrong = []
    for path, item in json.loads(body)["paths"].items():
        for one in item["get"].get("parameters", []):
            path = path.replace("{%s}" % one.get("name"), str(one.get("example")))
        status, body = get(base_url, path, key)
        report.add(f"`{path}`", f"{status} {code(body)}".strip())
        if status not in EXPECTED:
            wrong.append(path)
    if wrong:
        raise Failed(f"wrong answers: {', '.join(wrong)}")


def code(body: bytes) -> str:
    """Returns the code of an error. It tells a function that finds nothing from a route that is missing."""
    try:
        return json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return ""


def starts(stack: Stack, report: Report) -> None:
    """Reports what each function's instances have told about their init phases and their memory.

    The template turns the platform's own lines off. The functions' lines do not count the loading of the program.
    """
    time.sleep(DELAY)
    inits, memory = defaultdict(list), defaultdict(int)
    for line in lines(stack):
        name = line.get("FunctionName", "?").removeprefix(HOOK).removeprefix(f"{stack.name}-")
        inits[name] += [line["init_ms"]] if "init_ms" in line else []
        memory[name] = max(memory[name], line.get("max_memory_mb", 0))
    for name in sorted({program.parent.name for program in PROGRAMS.glob("*/bootstrap")} | set(inits)):
        if took := inits[name]:
            spread = f"{min(took)} / {median(took):.0f} / {max(took)} ms in {len(took)} starts"
            report.add(f"`{name}`, min / median / max of init", f"{spread}, at most {memory[name]} MB used")
        else:
            report.add(f"`{name}`", "none found")


def lines(stack: Stack) -> Iterator[dict]:
    pages = stack.client("logs").get_paginator("filter_log_events").paginate(
        logGroupName=stack.output("LogGroup"), filterPattern="{ ($.init_ms = *) || ($.max_memory_mb = *) }"
    )
    for event in (event for page in pages for event in page["events"]):
        try:
            yield json.loads(event["message"])
        except ValueError:
            continue
