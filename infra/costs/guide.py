"""The tables and the summary in docs/operations.md, each between two comments that name it."""

import re

from figures import ROOT, Failed, Points, Table

GUIDE = ROOT / "docs" / "operations.md"


def check(tables: dict[str, Table | Points]) -> None:
    text = GUIDE.read_text()
    wrong = []
    for name, table in tables.items():
        written = section(text, name).group(2).strip().splitlines()
        computed = table.markdown().splitlines()
        wrong += [f"{name} lacks: {line}" for line in computed if line not in written]
        wrong += [f"{name} has:   {line}" for line in written if line not in computed]
    if wrong:
        raise Failed("\n".join(["docs/operations.md has other costs than infra/costs/run --write puts there", *wrong]))


def write(tables: dict[str, Table | Points]) -> None:
    text = GUIDE.read_text()
    for name, table in tables.items():
        found = section(text, name)
        text = text[: found.start(2)] + f"\n{table.markdown()}\n" + text[found.end(2) :]
    GUIDE.write_text(text)


def section(text: str, name: str) -> re.Match:
    found = re.search(rf"(<!-- costs: {name} -->\n)(.*?)(<!-- end of costs -->)", text, re.DOTALL)
    if found is None:
        raise Failed(f"docs/operations.md lacks <!-- costs: {name} -->")
    return found
