"""Starts the service with its demo market, and runs the checks of the docs page on it: start.py PROGRAMS FOLDER."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

sys.path.insert(0, str(Path(__file__).parents[1]))
from stack import running

ONE_REQUEST = ["--limit", "1"]


def limited_key(stack) -> str:
    """Returns the text of a new key that may make one request per minute."""
    created = stack.marketctl("keys", "create", "--user", stack.user_id, "--scope", "catalog:read")
    stack.marketctl("keys", "update", created["key_id"], *ONE_REQUEST)
    return created["api_key"]


def main(programs: str, made: str) -> int:
    with running(programs) as stack:
        env = os.environ | {
            "BASE_URL": stack.base_url,
            "API_KEY": stack.new_key(tier="business"),
            "LIMITED_KEY": limited_key(stack),
            "CHROMIUM": which("chromium"),
            "PYTHON": sys.executable,
            "SHOTS": made,
        }
        return subprocess.run(["node", f"{made}/check.mjs"], env=env, check=False).returncode


sys.exit(main(*sys.argv[1:]))
