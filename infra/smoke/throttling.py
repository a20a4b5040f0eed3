"""Whether the gateway's throttle holds for each route or for all routes together."""

import time

from client import Client, at_once
from report import Report
from stack import Failed, Stack

# Requests a second, low enough for one client to exceed with each of two routes.
RATE = 20
# Seconds that the gateway has to take over a new rate, and seconds for which requests are sent.
SETTLE = 30
SECONDS = 15
CLIENTS = 16
# Neither needs a key, so both are cheap. Refusals without a key are answered by the function.
ROUTES = ("/v1/openapi.json", "/v1/public/me")
# If two routes get this many times what one gets, each has a rate of its own. If they get less than the lower one, they
# share a rate.
OWN_RATE, SHARED_RATE = 1.7, 1.3


def measure(stack: Stack, report: Report) -> None:
    gateway, api = stack.client("apigatewayv2"), stack.resource("Api")
    before = gateway.get_stage(ApiId=api, StageName="$default").get("DefaultRouteSettings", {})
    # The stack does not see this change, and gets its own rate back below.
    gateway.update_stage(ApiId=api, StageName="$default", DefaultRouteSettings=before | limits(RATE))
    try:
        time.sleep(SETTLE)
        one = drive(stack, ROUTES[:1])
        # The burst refills meanwhile.
        time.sleep(5)
        two = drive(stack, ROUTES)
    finally:
        gateway.update_stage(ApiId=api, StageName="$default", DefaultRouteSettings=before or limits(1000))
    time.sleep(SETTLE)
    for name, (through, sent) in {"one route": one, "two routes": two}.items():
        report.add(f"{name}, requests a second sent", sent)
        report.add(f"{name}, requests a second let through, at a rate of {RATE}", through)
    report.add("the rate is", verdict(one, two))


def limits(rate: int) -> dict[str, float]:
    return {"ThrottlingRateLimit": float(rate), "ThrottlingBurstLimit": rate}


def drive(stack: Stack, routes: tuple[str, ...]) -> tuple[float, float]:
    """Sends what it can to these routes. Returns how many requests a second got through, and how many were sent."""
    clients, end = [Client(stack.output("BaseUrl")) for _ in range(CLIENTS)], time.monotonic() + SECONDS

    def send(client: Client) -> list[int]:
        answers = []
        while time.monotonic() < end:
            answers.append(client.get(routes[len(answers) % len(routes)])[0])
        return answers

    statuses = [status for answers in at_once(clients, send) for status in answers]
    if 0 in statuses:
        raise Failed(f"{statuses.count(0)} of {len(statuses)} requests had no answer")
    return (len(statuses) - statuses.count(429)) / SECONDS, len(statuses) / SECONDS


def verdict(one: tuple[float, float], two: tuple[float, float]) -> str:
    if one[0] == one[1]:
        return "unknown: no request was throttled"
    if two[1] < 3 * RATE:
        return "unknown: the client was too slow"
    if two[0] >= OWN_RATE * one[0]:
        return "per route"
    return "shared by all routes" if two[0] <= SHARED_RATE * one[0] else "unclear"
