"""Runs ministack, an AWS on this machine, as a child process on a free port of 127.0.0.1."""

import os
import re
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from steps import HOME, LOGS, Failed, group, step, tail

LOG = LOGS / "ministack.log"
# Seconds that ministack has to start.
START = 60


@contextmanager
def running(programs: Path) -> Iterator[str]:
    """Runs ministack until the block ends. Yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(dir=HOME) as temporary, LOG.open("w") as file:
        own = variables(endpoint) | {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "TMPDIR": temporary}
        # Enforces the template's policies, and keeps everything but the gateway from listening.
        own |= {"AUTH": "true", "IOT_MTLS_ENABLED": "0"}
        command = [str(programs / "python"), "-B", str(Path(__file__).with_name("emulator"))]
        # The functions are children of ministack, and end with it.
        with group(command, env=own, stdout=file) as process:
            try:
                with step("ministack"):
                    wait_for(process, port)
                yield endpoint
            except Failed as failure:
                raise Failed(f"{failure}{tail(LOG)}") from failure


def variables(endpoint: str) -> dict[str, str]:
    """Returns this process's environment, with the variables by which AWS tools and tests find ministack.

    No other AWS variable is left, because it might lead elsewhere.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return own | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
        "SAM_CLI_TELEMETRY": "0",
    }


def assert_all_ran(functions: Iterable[str]) -> None:
    """Fails unless each of these functions has run at least once."""
    started = set(re.findall(r"environment spawned for (\S+)", LOG.read_text()))
    if missing := sorted(set(functions) - started):
        raise Failed(f"these functions never ran: {', '.join(missing)}")


def log_size() -> int:
    return LOG.stat().st_size


def log_since(size: int) -> str:
    """Returns what ministack has logged since its log had this size."""
    with LOG.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")


def wait_for(process: Popen, port: int) -> None:
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < START:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise Failed("ministack did not start")
