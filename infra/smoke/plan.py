"""What a run does, and what it costs at most."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    what: str
    minutes: int
    # Dollars, computed from AWS's list prices of us-east-1 without free tiers, and rounded up.
    dollars: float


STEPS = [
    Step("deploy both stacks under a fresh name", 15, 0.05),
    Step("make a key, and time cold and warm requests of each endpoint", 2, 0.01),
    Step("run the end-to-end tests (tests/it/anywhere)", 20, 0.20),
    Step("drive one route, then two, above the gateway's rate", 2, 0.02),
    Step("send 2,000 requests without a key, and wait for their metrics", 15, 0.01),
    Step("deploy a version that does not start, which must be rolled back", 15, 0.01),
    Step("restore a table to an earlier moment", 60, 0.10),
    Step("read the durations of inits from the logs", 2, 0.01),
    Step("remove everything", 20, 0.05),
]
# The secret, the alarms' metrics and our own metrics, which are billed by the hour.
STANDING_DOLLARS_PER_HOUR = 0.06


def lines(account: str, region: str, stack: str) -> list[str]:
    minutes = sum(step.minutes for step in STEPS)
    dollars = sum(step.dollars for step in STEPS) + STANDING_DOLLARS_PER_HOUR * minutes / 60
    found = [f"account {account}, region {region}, stacks {stack} and {stack}-data", ""]
    for number, step in enumerate(STEPS, 1):
        found.append(f"{number}. {step.what} (about {step.minutes} min, at most ${step.dollars:.2f})")
    found += ["", f"In all about {minutes / 60:.1f} hours and at most ${dollars:.2f}."]
    return [*found, "Estimates, not measured on AWS: list prices without free tiers, times assumed quantities."]
