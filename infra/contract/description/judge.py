"""Runs every judge on the description that the service serves, and says which of them found something."""

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

SOURCES = Path(__file__).parent
sys.path.insert(0, str(SOURCES.parent))
import stack

CONFIGURATIONS = [
    "spectral.yaml",
    "redocly.yaml",
    "schemathesis.toml",
    "schemathesis-refused.toml",
    "schemathesis_hooks.py",
]
WORKERS = "2"


def main(programs, made):
    made, programs = Path(made).resolve(), Path(programs).resolve()
    # Spectral finds the rule set of OWASP, and Schemathesis its hooks, only beside their configuration.
    for name in CONFIGURATIONS:
        shutil.copy(SOURCES / name, made)
    description = made / "openapi.json"
    python, node = made / "python/bin", made / "node_modules/.bin"
    judges = Judges(made)
    with stack.running(programs) as service:
        # As the gateway of a deployment asks: the description names the server that it was asked under.
        asked = urllib.request.Request(service.base_url + "/v1/openapi.json", headers={"X-Forwarded-Proto": "https"})
        with urllib.request.urlopen(asked) as response:
            description.write_bytes(response.read())
        judges.run("the document", python / "openapi-spec-validator", description)
        judges.run("Spectral", node / "spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint",
                   "--display-only-failures", description)
        judges.run("Redocly", node / "redocly", "lint", "--config", "redocly.yaml", description)
        runs = schemathesis_runs(service)
        os.environ["LOG_POSITION"] = log_position(service, runs[0][2])
        for name, configuration, key, only in runs:
            header = ["--header", f"Authorization: Bearer {key}"] if key else []
            judges.run(f"Schemathesis, {name}", python / "schemathesis", "--config-file", configuration, "run",
                       description, "--url", service.base_url, "--checks", "all", "--seed", "1", "--workers", WORKERS,
                       *header, *only)
    judges.run("httplint", python / "python", SOURCES / "wire.py", programs, description)
    if judges.complaining:
        sys.exit("findings of: " + ", ".join(judges.complaining))


def schemathesis_runs(service):
    """Returns each run's name, configuration, key, and which operations it is for."""
    scopes = [stack.SCOPES, ["wallet:read"], ["catalog:read"]]
    every, wallet, catalog = (service.new_key(*names, tier="business") for names in scopes)
    refused = "schemathesis-refused.toml"
    return [
        ("with a key", "schemathesis.toml", every, []),
        ("without a key", refused, None, []),
        ("with a key of another scope", refused, wallet, []),
        ("the account without its scopes", refused, catalog, ["--include-tag", "Account"]),
    ]


def log_position(service, key):
    listings = service.base_url + "/v1/public/listings?page_size=1"
    with urllib.request.urlopen(urllib.request.Request(listings, headers={"Authorization": f"Bearer {key}"})) as page:
        return page.headers["X-Log-Position"]


class Judges:
    """Runs commands in a folder, and remembers which of them failed."""

    def __init__(self, folder):
        self.folder, self.complaining = folder, []

    def run(self, name, *command):
        print(f"\n== judges: {name}", flush=True)
        if subprocess.run(command, cwd=self.folder).returncode:
            self.complaining.append(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
