"""Deploys both stacks to an AWS on this machine, and takes them through what a real deployment may go through:

1. A service without data is refused, and nothing of it is left.
2. Both stacks are deployed by the commands of the guide, and every end-to-end test that needs only a base URL and an AWS
   endpoint (tests/it/anywhere) runs against them.
3. New versions are deployed: one that does not start, and good ones.
4. The service is deleted and deployed again.

A key that is made after the first deployment works to the end. `run` starts this with the Python that has boto3.
"""

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloud
import lifecycle
import releases
from deployment import Deployment
from steps import HOME, ROOT, Failed, run, step

# The run fails if fewer tests pass, because then some were not found.
FEWEST_TESTS = 55
PROGRAMS = ROOT / "target" / "lambda"


def main(tools: Path, ministack: Path, serves: bool) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("deployed: ended by SIGTERM"))
    if serves:
        serve(tools, ministack)
    with programs(), cloud.running(ministack) as endpoint:
        deployment = Deployment(tools, endpoint)
        with step("a service without data"):
            lifecycle.fail_first_deployment(deployment)
        with step("deployment"):
            deployment.deploy_data()
            deployment.assert_noted("The service is not deployed")
            deployment.deploy()
            deployment.assert_noted("Nobody hears alarms")
            deployment.make_key()
            deployment.assert_data_kept()
        passed = test(deployment)
        with step("the plan of a smoke test"):
            lifecycle.plan_smoke_test(deployment)
        with step("a version that does not start"):
            releases.refuse_broken_version(deployment)
        with step("new versions"):
            releases.deploy_good_versions(deployment)
            deployment.assert_noted()
        cloud.assert_all_ran(deployment.functions())
        with step("the service deleted and deployed again"):
            lifecycle.replace_service(deployment)
    print(f"\n{passed} tests passed against the deployed stack, every function ran, and the data outlived its service")


def serve(tools: Path, ministack: Path) -> None:
    """Runs the AWS until Ctrl-C. Prints what a shell needs to use it, and sam with it."""
    with cloud.running(ministack) as endpoint:
        own = {name: value for name, value in cloud.variables(endpoint).items() if os.environ.get(name) != value}
        print("\nPaste this into another terminal:\n")
        print("\n".join(f"export {name}={value}" for name, value in sorted(own.items())))
        print(f'export PATH="{tools}:$PATH"\n', flush=True)
        signal.pause()


@contextmanager
def programs() -> Iterator[None]:
    """Puts the functions where the template looks for them, until the block ends: those that `cargo test` runs, without
    symbols. So nothing is compiled twice. `infra/arm64/run` runs what is deployed. What was built before is put back."""
    with step("programs"):
        run("binaries", ["cargo", "build", "--locked", "--workspace", "--bins"], dict(os.environ), shown=True)
        kept = HOME / "lambda"
        if PROGRAMS.exists() and not kept.exists():
            PROGRAMS.rename(kept)
        shutil.rmtree(PROGRAMS, ignore_errors=True)
        for folder in (ROOT / "functions").iterdir():
            program = PROGRAMS / folder.name / "bootstrap"
            program.parent.mkdir(parents=True)
            built = ROOT / "target" / "debug" / folder.name
            run("strip", ["strip", "-o", str(program), str(built)], dict(os.environ))
    try:
        yield
    finally:
        # Otherwise somebody might deploy them.
        shutil.rmtree(PROGRAMS)
        if kept.exists():
            kept.rename(PROGRAMS)


def test(deployment: Deployment) -> int:
    """Runs the tests against the stack. Returns how many passed. Fails if there are too few."""
    with step("tests"):
        tests = ["cargo", "test", "--locked", "--workspace", "--test", "it", "anywhere::", "--", "--test-threads", "12"]
        variables = deployment.variables | {"MARKETPLACE_BASE_URL": deployment.base_url()}
        log = run("tests", tests, variables, shown=True)
    passed = sum(int(number) for number in re.findall(r"^test result: ok\. (\d+) passed", log, re.MULTILINE))
    if passed < FEWEST_TESTS:
        raise Failed(f"only {passed} tests passed, of at least {FEWEST_TESTS}")
    return passed


try:
    main(*map(Path, sys.argv[1:3]), serves=sys.argv[3:] == ["--serve"])
except Failed as failure:
    sys.exit(f"\ndeployed: {failure}")
except KeyboardInterrupt:
    sys.exit("\ndeployed: interrupted")
