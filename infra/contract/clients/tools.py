"""Installs the pinned tools of the clients into target/contract/clients, and runs them."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
MADE = HERE.parents[2] / "target/contract/clients"
PYTHON = MADE / "python"
NODE = MADE / "node"
# Programs find Node, Java, Go and each other here.
ENVIRONMENT = os.environ | {
    "PATH": f"{PYTHON}/bin:{NODE}/node_modules/.bin:{os.environ['PATH']}",
    "GOCACHE": str(MADE / "go-cache"),
    "GOFLAGS": "-mod=mod",
    "GOTOOLCHAIN": "local",
    "GOPROXY": "off",
}


class Failed(Exception):
    """Why the clients do not pass."""


@contextmanager
def step(name):
    """Says what begins, and how long it took."""
    begun = time.monotonic()
    print(f"== {name}", flush=True)
    yield
    print(f"   {time.monotonic() - begun:.0f} s", flush=True)


def run(*command, **variables):
    """Runs a program in target/contract/clients. Shows what it printed if it fails."""
    command = [str(word) for word in command]
    environment = ENVIRONMENT | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        command, cwd=MADE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stdout}")


def install():
    """Installs what requirements.txt and package-lock.json list, each again whenever it changes."""
    MADE.mkdir(parents=True, exist_ok=True)
    run(HERE.parents[1] / "environment", PYTHON, HERE / "requirements.txt")
    pins, installed = HERE / "package-lock.json", NODE / "installed"
    if not installed.exists() or installed.read_bytes() != pins.read_bytes():
        shutil.rmtree(NODE, ignore_errors=True)
        NODE.mkdir()
        for name in ["package.json", "package-lock.json"]:
            shutil.copy(HERE / name, NODE)
        run("npm", "ci", "--prefix", NODE, "--ignore-scripts", "--no-audit", "--no-fund")
        shutil.copy(pins, installed)
