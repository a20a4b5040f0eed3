"""The templates, prices and inputs that costs are computed from."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPANDED = ROOT / "target" / "lint" / "expanded"
MILLION = 1_000_000


class Failed(Exception):
    """The costs cannot be computed, or the guide has others. The message is for the terminal."""


class Figures:
    def __init__(self) -> None:
        if not EXPANDED.is_dir():
            raise Failed(f"{EXPANDED.relative_to(ROOT)} is missing: run infra/lint/run first")
        here = Path(__file__).parent
        self.prices, self.inputs = (json.loads((here / name).read_text()) for name in ("prices.json", "inputs.json"))
        self.templates = {path.stem: json.loads(path.read_text()) for path in sorted(EXPANDED.glob("*.json"))}

    def price(self, name: str) -> float:
        return self.prices[name]["usd"]

    def input(self, name: str) -> float:
        return self.inputs[name]["value"]

    def resources(self, template: str, kind: str) -> dict[str, dict]:
        """Returns the properties of a template's resources of a type, by their names."""
        if template not in self.templates:
            raise Failed(f"target/lint/expanded has no {template}.json: run infra/lint/run again")
        found = self.templates[template]["Resources"].items()
        return {name: one["Properties"] for name, one in found if one["Type"] == kind}

    def watched(self, *templates: str) -> int:
        """Returns how many metrics the alarms of these templates look at."""
        alarms = [one for name in templates for one in self.resources(name, "AWS::CloudWatch::Alarm").values()]
        return sum(sum("MetricStat" in query for query in alarm.get("Metrics", [])) or 1 for alarm in alarms)

    def invocation(self, function: str, millis: float) -> float:
        """Returns the cost of one invocation of a function. If its memory is a parameter, the default counts."""
        size = self.resources("template", "AWS::Lambda::Function")[function]["MemorySize"]
        if isinstance(size, dict):
            size = self.templates["template"]["Parameters"][size["Ref"]]["Default"]
        return self.price("lambda_request") + size / 1024 * millis / 1_000 * self.price("lambda_gb_second_arm64")

    def stores(self, writes: float = 0, reads: float = 0, queue_calls: float = 0) -> float:
        """Returns the cost of a number of DynamoDB units and SQS calls."""
        units = writes * self.price("dynamodb_write_unit") + reads * self.price("dynamodb_read_unit")
        return units + queue_calls * self.price("sqs_request")

    def log(self, kilobytes: float) -> float:
        return kilobytes / MILLION * self.price("log_gb")


def dollars(low: float, high: float | None = None) -> str:
    """Returns an amount, or the range between two, in cents."""
    texts = [f"{one + 1e-9:.2f}" for one in (low, low if high is None else high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)
