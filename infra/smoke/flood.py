"""Sends more requests than the gateway's throttle lets through, to see what it counts: the stage or each route.

The requests have no key, so that functions refuse them at once and read nothing.
"""

import json
import threading
import time
from collections import Counter

from client import Client
from releases import heeded
from report import Report
from stack import Failed, Stack

# Requests per second, and in one burst: few enough for an account that runs ten functions at once.
RATE = BURST = 50
PATHS = ("/v1/public/me", "/v1/public/catalog", "/v1/public/marketplaces", "/v1/public/wallet/balance")
# Requests at a time. Over a distance of 100 ms they make about 480 per second.
THREADS = 48
# Seconds in which one client after the other begins, which uses up the burst, and then those that are counted.
WARM_UP, COUNTED = 10, 15
# What counts as near: at most this share more or less.
TOLERANCE = 0.3
# What the gateway says, and what a function never says. AWS answers like the second if it runs no more functions.
THROTTLED, NO_CAPACITY = (429, "Too Many Requests"), (503, "Service Unavailable")


def measure(stack: Stack, report: Report) -> None:
    """Lowers the throttle and floods one route, then several at once.

    The deployment is all at once, as in an emergency. Then no alarm may stand in its way.
    """
    stack.parameters |= {"ThrottleRate": str(RATE), "ThrottleBurst": str(BURST)}
    rollout, stack.parameters["Rollout"] = stack.parameters["Rollout"], "AllAtOnce"
    begun = time.monotonic()
    try:
        stack.deploy("--service-only")
    finally:
        stack.parameters["Rollout"] = rollout
    report.add("the deployment of another throttle, s", time.monotonic() - begun)
    report.add("alarms that a deployment all at once heeds", heeded(stack))
    base_url = stack.output("BaseUrl")
    alone = flood(base_url, PATHS[:1])
    one = tell(report, "one route", alone)
    together = flood(base_url, PATHS)
    several = tell(report, f"{len(PATHS)} routes together", together)
    report.add("the throttle, requests per second", RATE)
    report.add("it counts", verdict(one, several, sum(together.values()) / COUNTED))


def tell(report: Report, where: str, answers: Counter) -> float:
    """Reports the answers. Returns how many requests per second passed the throttle."""
    if not sum(answers.values()):
        raise Failed(f"no answers on {where}")
    admitted = (sum(answers.values()) - answers["throttled"] - answers["none"]) / COUNTED
    report.add(f"admitted per second on {where}", admitted)
    report.add(f"answers on {where}", ", ".join(f"{count} × {what}" for what, count in answers.most_common()))
    return admitted


def verdict(one: float, several: float, sent: float) -> str:
    """Says what the throttle counts, by the requests per second that one route and several admitted, and all sent."""
    numbers = f"{one:.0f} on one route, {several:.0f} on {len(PATHS)}, of {sent:.0f} sent, with a throttle of {RATE}"
    if near(one, RATE) and near(several, RATE):
        return f"for the stage ({numbers})"
    if near(one, RATE) and near(several, len(PATHS) * RATE) and several < sent * 0.9:
        return f"for each route ({numbers})"
    return f"unclear ({numbers})"


def near(found: float, expected: float) -> bool:
    return abs(found - expected) <= TOLERANCE * expected


def flood(base_url: str, paths: tuple[str, ...]) -> Counter:
    """Sends requests to all these paths at once. Returns how many were answered in which way, after the warm-up."""
    answers, begin = Counter(), time.monotonic() + WARM_UP
    counting = threading.Lock()

    def ask(number: int) -> None:
        # If all began at once, an account that runs ten functions would have none left.
        time.sleep(WARM_UP * number / THREADS)
        client, path, own = Client(base_url), paths[number % len(paths)], Counter()
        while (now := time.monotonic()) < begin + COUNTED:
            answer = name(*client.get(path))
            if now >= begin:
                own[answer] += 1
        client.close()
        with counting:
            answers.update(own)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def name(status: int, body: bytes) -> str:
    try:
        said = json.loads(body).get("message")
    except (ValueError, AttributeError):
        said = None
    if (status, said) == THROTTLED:
        return "throttled"
    if (status, said) == NO_CAPACITY:
        return "503 without a function"
    return str(status or "none")
