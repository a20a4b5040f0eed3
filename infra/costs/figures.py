"""The templates, prices and inputs that costs are computed from, and the tables that they become."""

import json
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPANDED = ROOT / "target" / "lint" / "expanded"
MILLION = 1_000_000


class Failed(Exception):
    """The costs cannot be computed, or the guide has others. The message is for the terminal."""


@dataclass
class Table:
    """A table of the guide. Each row has its cells in `cells`, and more for programs."""

    head: list[str]
    rows: list[dict] = field(default_factory=list)

    def add(self, *cells: str, **more: float | str) -> None:
        self.rows.append({"cells": list(cells)} | more)

    def markdown(self) -> str:
        lines = ["| " + " | ".join(cells) + " |" for cells in [self.head, *(row["cells"] for row in self.rows)]]
        return "\n".join([lines[0], "|" + "---|" * len(self.head), *lines[1:]])


@dataclass
class Points:
    """A list of the guide."""

    rows: list[str]

    def markdown(self) -> str:
        return "\n".join(f"- {row}" for row in self.rows)


class Figures:
    def __init__(self, prices: dict, inputs: dict, templates: dict) -> None:
        self.prices, self.inputs, self.templates = prices, inputs, templates

    @classmethod
    def read(cls) -> "Figures":
        if not EXPANDED.is_dir():
            raise Failed(f"{EXPANDED.relative_to(ROOT)} is missing: run infra/lint/run first")
        here = Path(__file__).parent
        templates = {path.stem: json.loads(path.read_text()) for path in sorted(EXPANDED.glob("*.json"))}
        return cls(*(json.loads((here / name).read_text()) for name in ("prices.json", "inputs.json")), templates)

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

    def memory_gb(self, function: str) -> float:
        """Returns the memory of a function. A parameter has its default."""
        size = self.resources("template", "AWS::Lambda::Function")[function]["MemorySize"]
        if isinstance(size, dict):
            size = self.templates["template"]["Parameters"][size["Ref"]]["Default"]
        return size / 1024

    def invocation(self, function: str, millis: float) -> float:
        """Returns what an invocation of a function costs that takes so long."""
        seconds = self.memory_gb(function) * millis / 1_000
        return self.price("lambda_request") + seconds * self.price("lambda_gb_second_arm64")

    def log(self, kilobytes: float) -> float:
        return kilobytes / MILLION * self.price("log_gb")


def dollars(low: float, high: float | None = None) -> str:
    """Returns an amount, or the range between two, in cents."""
    texts = [f"{one + 1e-9:.2f}" for one in (low, low if high is None else high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)
