"""The steps of a run. Each is shown on the terminal with the time it took. The output of commands is kept in logs."""

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
# The number of lines of a log that are shown after a failure.
TAIL = 40
# Seconds that a process has to end after a signal.
END = 10


class Failed(Exception):
    """A step failed. The message is for the terminal."""


@contextmanager
def step(name: str) -> Iterator[None]:
    print(f"-- {name}", flush=True)
    begun = time.monotonic()
    yield
    print(f"   {name}: {time.monotonic() - begun:.0f} s", flush=True)


def run(name: str, command: list[str], variables: dict[str, str], *, shown: bool = False, typed: str = "") -> str:
    """Runs a command to its end and returns its output, which also goes to a log and, if `shown`, to the terminal.

    It reads what is `typed`.
    """
    log = LOGS / f"{name}.log"
    piped = {"stdin": PIPE, "stdout": PIPE, "text": True, "errors": "replace"}
    with log.open("w") as file, group(command, cwd=ROOT, env=variables, **piped) as process:
        process.stdin.write(typed)
        process.stdin.close()
        for line in process.stdout:
            file.write(line)
            if shown:
                sys.stdout.write(line)
                sys.stdout.flush()
        process.wait()
    if process.returncode != 0:
        raise Failed(f"{' '.join(command[:3])} … ended with {process.returncode}{'' if shown else tail(log)}")
    return log.read_text()


def environment(name: str, *requirements: str) -> Path:
    """Returns the folder of programs of a Python environment made from these files below infra/."""
    folder, files = HOME / name, [str(ROOT / "infra" / file) for file in requirements]
    run(name, [str(ROOT / "infra/environment"), str(folder), *files], dict(os.environ))
    return folder / "bin"


@contextmanager
def group(command: list[str], **options) -> Iterator[Popen]:
    """Runs a process. When the block ends, it ends the process and its children."""
    process = Popen(command, stderr=STDOUT, start_new_session=True, **({"stdin": DEVNULL} | options))
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(END)


def tail(log: Path) -> str:
    """Returns the last lines of a log, to append to a message."""
    lines = log.read_text(errors="replace").splitlines()
    return "".join(f"\n  {line}" for line in [f"the end of {log.relative_to(ROOT)}:", *lines[-TAIL:]])
