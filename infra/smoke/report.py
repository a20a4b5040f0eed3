"""The report: one line for each figure, with the emulator's figure beside it."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

# The figures of a run against the emulator of infra/deployed, as --json printed them.
EMULATOR = Path(__file__).with_name("emulator.json")


@dataclass
class Figure:
    section: str
    what: str
    value: str

    def key(self) -> tuple[str, str]:
        return self.section, self.what


@dataclass
class Report:
    """What one run has found."""

    stack: str
    region: str
    on_aws: bool
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

    def fail(self, reason: object) -> None:
        self.failures.append(Figure(self.sections[-1], "failed", str(reason)))
        print(f"   FAILED: {reason}", flush=True)

    def json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def markdown(self) -> str:
        where = f"AWS, region {self.region}" if self.on_aws else "an emulator. Nothing in it was seen on AWS"
        lines = ["# Smoke test", "", f"Stack `{self.stack}`, begun {self.begun}, on {where}.", ""]
        lines += ["Every line says whether this run saw it on AWS. *Emulator* is an earlier run on this project's"]
        lines += ["emulator, whose times say nothing about AWS.", ""]
        emulator, seen = emulated(), "seen on AWS" if self.on_aws else "not seen on AWS"
        for section in self.sections:
            found = [figure for figure in [*self.figures, *self.failures] if figure.section == section]
            lines += [f"## {section}", "", "| What | This run | Emulator | Seen |", "|---|---|---|---|"] if found else []
            for figure in found:
                value = cell(figure.value)
                lines.append(f"| {figure.what} | {value} | {emulator.get(figure.key(), 'none')} | {seen} |")
            lines += [""] if found else []
        return "\n".join(lines)


def emulated() -> dict[tuple[str, str], str]:
    figures = json.loads(EMULATOR.read_text())["figures"] if EMULATOR.exists() else []
    return {(figure["section"], figure["what"]): figure["value"] for figure in figures}


def cell(text: str) -> str:
    """Returns text for a cell of a table: the first line, since the logs have the rest."""
    return text.splitlines()[0].replace("|", "\\|") if text else ""
