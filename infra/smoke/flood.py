"""What a flood of requests without a key costs, by CloudWatch's metrics."""

import time
from datetime import UTC, datetime, timedelta

from client import Client, at_once
from report import Report
from stack import Failed, Stack, is_aws

REQUESTS = 2000
CLIENTS = 8
PATH = "/v1/public/me"
# Seconds after which CloudWatch has the metrics of a minute, and seconds between two looks.
PATIENCE = 900 if is_aws() else 30
PAUSE = 30
# AWS's list prices of us-east-1, in dollars: a million requests of an HTTP API, a million invocations, a
# gigabyte-second on arm64 and on x86-64, a gigabyte of logs.
GATEWAY, INVOCATIONS, LOGS = 1.00, 0.20, 0.50
MEMORY_SECOND = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
MEMORY_GB = 0.5


def measure(stack: Stack, report: Report, architecture: str) -> None:
    time.sleep(60 - time.time() % 60)
    begun = datetime.now(UTC).replace(second=0, microsecond=0)
    milliseconds = send(stack)
    # Refusals share lines, and the last line may be written a minute later.
    ended = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=2)
    report.add("requests answered with 401", REQUESTS)
    report.add("requests a second", REQUESTS / milliseconds * 1000)
    found = counted(stack, begun, ended)
    report.add("invocations", found["invocations"])
    report.add("Lambda's duration of a request, ms", found["duration"] / REQUESTS)
    # The lines of `sweep` and `compact` are in it, one each a minute.
    report.add("the functions' log, bytes a request", found["function log"] / REQUESTS)
    report.add("the gateway's log, bytes a request", found["gateway log"] / REQUESTS)
    report.add("a million such requests, computed, $", price(found, architecture) / REQUESTS * 1_000_000)


def send(stack: Stack) -> float:
    """Sends the requests. Returns the milliseconds that all of them took."""
    clients, begun = [Client(stack.output("BaseUrl")) for _ in range(CLIENTS)], time.perf_counter()
    answers = at_once(clients, lambda client: [client.get(PATH)[0] for _ in range(REQUESTS // CLIENTS)])
    took = (time.perf_counter() - begun) * 1000
    if wrong := sorted({status for statuses in answers for status in statuses if status != 401}):
        raise Failed(f"requests without a key were answered with {wrong}")
    return took


def counted(stack: Stack, begun: datetime, ended: datetime) -> dict[str, float]:
    """Returns the sums of the metrics of these minutes, once they have all requests. A log may come to nothing."""
    metrics = stack.client("cloudwatch")

    def total(namespace: str, metric: str, dimension: str, value: str) -> float:
        found = metrics.get_metric_statistics(
            Namespace=namespace, MetricName=metric, Dimensions=[{"Name": dimension, "Value": value}],
            StartTime=begun, EndTime=ended, Period=60, Statistics=["Sum"],
        )
        return sum(point["Sum"] for point in found["Datapoints"])

    wanted = {
        "invocations": ("AWS/Lambda", "Invocations", "FunctionName", f"{stack.name}-me"),
        "duration": ("AWS/Lambda", "Duration", "FunctionName", f"{stack.name}-me"),
        "function log": ("AWS/Logs", "IncomingBytes", "LogGroupName", f"/aws/lambda/{stack.name}"),
        "gateway log": ("AWS/Logs", "IncomingBytes", "LogGroupName", f"/aws/vendedlogs/apigateway/{stack.name}"),
    }
    time.sleep(max(0.0, (ended - datetime.now(UTC)).total_seconds()))
    deadline = time.monotonic() + PATIENCE
    while True:
        found = {name: total(*metric) for name, metric in wanted.items()}
        if found["invocations"] >= REQUESTS and all(found.values()):
            return found
        if time.monotonic() > deadline:
            break
        time.sleep(PAUSE)
    if found["invocations"] < REQUESTS:
        raise Failed(f"after {PATIENCE} seconds CloudWatch has {found} of {REQUESTS} requests")
    return found


def price(found: dict[str, float], architecture: str) -> float:
    lambda_price = found["invocations"] * INVOCATIONS / 1e6
    lambda_price += found["duration"] / 1000 * MEMORY_GB * MEMORY_SECOND[architecture]
    logs = (found["function log"] + found["gateway log"]) * LOGS / 1e9
    return REQUESTS * GATEWAY / 1e6 + lambda_price + logs
