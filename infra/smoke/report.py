"""The report: the figures and failures of each step."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime


@dataclass
class Figure:
    section: str
    what: str
    value: str


@dataclass
class Report:
    """What one run has found. Its documents do not tell the account."""

    stack: str
    region: str
    on_aws: bool
    account: str
    begun: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    # Figures are added to the last of them.
    sections: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    failures: list[Figure] = field(default_factory=list)

    def begin(self, section: str) -> None:
        self.sections.append(section)
        print(f"\n== {section}", flush=True)

    def add(self, what: str, value: object) -> None:
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        self.figures.append(Figure(self.sections[-1], what, text))
        print(f"   {what}: {text}", flush=True)

    def fail(self, *reasons: object) -> None:
        for reason in reasons:
            self.failures.append(Figure(self.sections[-1], "failed", str(reason)))
            print(f"   FAILED: {reason}", flush=True)

    def json(self) -> str:
        return self.masked(json.dumps(asdict(self), indent=1))

    def markdown(self) -> str:
        where = f"AWS, region {self.region}" if self.on_aws else "an emulator. Nothing in it was seen on AWS"
        lines = ["# Smoke test", "", f"Stack `{self.stack}`, begun {self.begun}, on {where}.", ""]
        lines += ["| Step | What | Value |", "|---|---|---|"]
        found = [*self.figures, *self.failures]
        # The logs have the rest of a value with several lines.
        rows = [(one.section, one.what, one.value.partition("\n")[0].replace("|", "\\|")) for one in found]
        return self.masked("\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]))

    def masked(self, text: str) -> str:
        return text.replace(self.account, "0" * len(self.account))
