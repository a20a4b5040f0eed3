"""Steps of a run: told on the terminal with the time they took, their output kept below target/."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "deployed"
LOGS = HOME / "logs"
# So many lines of a log tell what went wrong.
TAIL = 40
# Seconds that a process has for its end.
END = 10


class Failed(Exception):
    """A step that failed, in words for the terminal."""


@contextmanager
def step(name: str) -> Iterator[None]:
    print(f"-- {name}", flush=True)
    begun = time.monotonic()
    yield
    print(f"   {name}: {time.monotonic() - begun:.0f} s", flush=True)


def run(name: str, command: list[str], variables: dict[str, str], *, shown: bool = False) -> str:
    """Runs a command to its end, writes its output to a log, and shows it meanwhile if it is long; gives the output."""
    log = LOGS / f"{name}.log"
    piped = {"stdout": PIPE, "text": True, "errors": "replace"}
    with log.open("w") as file, group(command, cwd=ROOT, env=variables, **piped) as process:
        for line in process.stdout:
            file.write(line)
            if shown:
                sys.stdout.write(line)
                sys.stdout.flush()
        process.wait()
    if process.returncode != 0:
        raise Failed(f"{' '.join(command[:3])} … ended with {process.returncode}{'' if shown else tail(log)}")
    return log.read_text()


@contextmanager
def group(command: list[str], **options) -> Iterator[Popen]:
    """A process, which ends with the block and takes its children with it."""
    process = Popen(command, stdin=DEVNULL, stderr=STDOUT, start_new_session=True, **options)
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(END)


def tail(log: Path) -> str:
    """The end of a log, to go behind a message."""
    lines = log.read_text(errors="replace").splitlines()
    return "".join(f"\n  {line}" for line in [f"the end of {log.relative_to(ROOT)}:", *lines[-TAIL:]])
