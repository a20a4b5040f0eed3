"""The report: the figures and failures of each step."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path


@dataclass
class Report:
    """What one run has found. Its documents do not tell the account's number."""

    stack: str
    region: str
    on_aws: bool
    account: str
    begun: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    step: str = ""
    # Each has a step, what it is, and its value.
    figures: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)

    def begin(self, step: str) -> None:
        self.step = step
        print(f"\n== {step}", flush=True)

    def add(self, what: str, value: object) -> None:
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        self.figures.append((self.step, what, text))
        print(f"   {what}: {text}", flush=True)

    def fail(self, *reasons: str) -> None:
        for reason in reasons:
            self.failures.append((self.step, "FAILED", reason))
            print(f"   FAILED: {reason}", flush=True)

    def write(self, folder: Path) -> None:
        where = f"AWS, region {self.region}" if self.on_aws else "an emulator. Nothing in it was seen on AWS"
        lines = ["# Smoke test", "", f"Stack `{self.stack}`, begun {self.begun}, on {where}.", ""]
        lines += ["| Step | What | Value |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |".replace("\n", "<br>") for row in [*self.figures, *self.failures]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(self.masked("\n".join([*lines, ""])))
        print(f"\n{len(self.failures)} failures. The report is {folder / 'report.md'}")

    def json(self) -> str:
        return self.masked(json.dumps(asdict(self), indent=1))

    def masked(self, text: str) -> str:
        return text.replace(self.account, "0" * len(self.account))
