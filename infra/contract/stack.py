"""Starts the service on this machine, with the demo market and keys of every kind, for those who judge its contract."""

import contextlib
import json
import os
import subprocess

SCOPES = ["catalog:read", "listings:read", "orders:read", "wallet:read"]


class Stack:
    """A running service: its base URL, the demo user with a key of every scope, and a way to make more keys."""

    def __init__(self, ready, marketctl):
        self.base_url = ready["base_url"]
        self.user_id = ready["user_id"]
        self.api_key = ready["api_key"]
        self.env = os.environ | ready["env"]
        self._marketctl = marketctl

    def marketctl(self, *arguments):
        """Runs marketctl against this stack and returns the JSON that it prints."""
        command = [self._marketctl, "--json", *arguments]
        done = subprocess.run(command, env=self.env, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(done.stdout)

    def new_key(self, *scopes, tier="free"):
        """Returns the text of a new key of the demo user. The tiers above `free` have more requests per minute."""
        flags = [flag for scope in scopes or SCOPES for flag in ("--scope", scope)]
        if tier != "free":
            flags += ["--tier", tier, "--preview"]
        return self.marketctl("keys", "create", "--user", self.user_id, *flags)["api_key"]


@contextlib.contextmanager
def running(programs, *flags):
    """Runs the service of the folder `programs` on free ports until the block ends."""
    command = [f"{programs}/local", "--listen", "127.0.0.1:0", "--aws-listen", "127.0.0.1:0", "--json", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield Stack(json.loads(process.stdout.readline()), f"{programs}/marketctl")
        finally:
            process.terminate()
