"""The end-to-end tests, against the deployed stack."""

import re

from relay import without_tls
from report import Report
from stack import Failed, Stack, log_file

# Tests at a time. A new account runs ten functions at once.
THREADS = "4"


def build(stack: Stack) -> None:
    """Builds marketctl and what the tests start. Otherwise the first test that needs one would wait too long."""
    stack.run("build", ["cargo", "build", "--locked", "--workspace", "--bins"])


def run_tests(stack: Stack, report: Report) -> None:
    command = ["cargo", "test", "--locked", "--workspace", "--test", "it", "anywhere::"]
    command += ["--", "--test-threads", THREADS]
    try:
        with without_tls(stack.output("BaseUrl")) as base_url:
            stack.run("tests", command, MARKETPLACE_BASE_URL=base_url, MARKETPLACE_STACK=stack.name)
    finally:
        log = log_file("tests").read_text(errors="replace")
        for what in ("passed", "failed"):
            report.add(what, sum(map(int, re.findall(rf"^test result: .*?(\d+) {what}", log, re.MULTILINE))))
    if not re.search(r"[1-9]\d* passed", log):
        raise Failed("no test ran")
