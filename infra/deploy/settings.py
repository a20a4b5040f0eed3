"""The settings of a deployment: what samconfig.toml says, and what the command line adds."""

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# S3 allows 63 characters for the bucket's name. Account and region may take 33 of them.
STACK_NAME = re.compile("[a-z]([a-z0-9-]{0,28}[a-z0-9])?")


class Failed(Exception):
    """Nothing more can be done. The message is for the terminal."""


@dataclass
class Settings:
    """One stack's template, its samconfig.toml, its region if that names one, and its parameters."""

    template: Path
    samconfig: Path
    stack: str
    region: str | None
    parameters: dict[str, str]

    def known(self) -> set[str]:
        """Returns the names of the template's parameters."""
        return self.names("Parameters")

    def resources(self) -> set[str]:
        """Returns the names of the template's resources."""
        return self.names("Resources")

    def names(self, section: str) -> set[str]:
        found = re.search(rf"^{section}:\n((?:[ #].*\n|\n)+)", self.template.read_text(), re.MULTILINE)
        return set(re.findall(r"^  (\w+):", found[1], re.MULTILINE))


def read(config: str, name: str | None, added: list[str]) -> tuple[Settings, Settings]:
    """Returns the settings of the data and of the service, for a section of the samconfig files.

    Each added parameter goes to the templates that have it. It replaces only the one value in samconfig.toml.
    """
    service = from_samconfig(ROOT / "template.yaml", ROOT / "samconfig.toml", config)
    data = from_samconfig(ROOT / "infra/data/template.yaml", ROOT / "infra/data/samconfig.toml", config)
    if data.region != service.region:
        raise Failed(f"the samconfig files name two regions: {data.region} and {service.region}")
    service.stack = name or service.stack
    if not STACK_NAME.fullmatch(service.stack):
        raise Failed(f"{service.stack} is no name for a stack: at most 30 lower-case letters, digits and hyphens")
    data.stack, data.parameters["Stack"] = f"{service.stack}-data", service.stack
    for parameter in added:
        key, separator, value = parameter.partition("=")
        if not separator:
            raise Failed(f"--parameter {parameter}: must be NAME=VALUE")
        having = [settings for settings in (data, service) if key in settings.known()]
        if not having:
            raise Failed(f"--parameter {parameter}: no template has a parameter {key}")
        if key == "Stack":
            raise Failed("--parameter Stack: give --stack-name instead")
        for settings in having:
            settings.parameters[key] = value
    return data, service


def from_samconfig(template: Path, samconfig: Path, config: str) -> Settings:
    name = samconfig.relative_to(ROOT)
    try:
        sections = tomllib.loads(samconfig.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{name}: {error}") from None
    if config not in sections:
        raise Failed(f"{name} has no section {config}")
    given = sections[config].get("deploy", {}).get("parameters", {}).get("parameter_overrides", [])
    common = sections[config]["global"]["parameters"]
    settings = Settings(template, samconfig, common["stack_name"], common.get("region"), {})
    for part in shlex.split(given) if isinstance(given, str) else given:
        key, separator, value = part.partition("=")
        if not separator:
            raise Failed(f"{name}, section {config}: parameter_overrides: {part} must be NAME=VALUE, without blanks")
        # CloudFormation would pass over it without a word.
        if key not in settings.known():
            raise Failed(f"{name}, section {config}: {template.relative_to(ROOT)} has no parameter {key}")
        settings.parameters[key] = value
    return settings
