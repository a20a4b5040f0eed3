"""Compares what the functions of a stack run with the programs in target/lambda.

CloudFormation takes a function's package from a bucket that other stacks of the account use as well. Lambda says which
package it has got.
"""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import boto3
from samcli.lib.package.utils import make_zip_with_lambda_permissions, zip_folder

from settings import ROOT, Failed
from versions import ALIAS, functions

PROGRAMS = ROOT / "target/lambda"
HOOK = "CodeDeployHook_"
# What the ELF header of a program says of its processor, and the value of the template's Architecture.
ARCHITECTURES = {0x3E: "x86_64", 0xB7: "arm64"}


def architecture() -> str:
    """Returns for which processor the functions were built, as the template's parameter says it."""
    headers = (program.read_bytes()[:20] for program in PROGRAMS.glob("*/bootstrap"))
    machines = {int.from_bytes(header[18:20], "little") for header in headers if header.startswith(b"\x7fELF")}
    if len(machines) != 1 or not machines <= ARCHITECTURES.keys():
        what = "programs for other processors" if machines else "no functions"
        raise Failed(f"target/lambda has {what}: first run cargo lambda build --locked --release --arm64")
    return ARCHITECTURES[machines.pop()]


def settle_modes() -> None:
    """Makes the packages depend on nothing but the programs. sam packs their modes, but not their times."""
    for program in PROGRAMS.glob("*/bootstrap"):
        program.chmod(0o755)


def digests() -> dict[str, str]:
    """Returns the SHA-256 of the package that sam makes of each program, by the name of its folder."""
    return {program.parent.name: digest(program.parent) for program in PROGRAMS.glob("*/bootstrap")}


def refuse_others(stack: str, own: dict[str, str]) -> None:
    """Fails if a function of a stack has another package than sam makes of its program."""
    client = boto3.client("lambda")
    wrong = []
    for function in functions(stack):
        # The hook has no alias, and runs as it is now.
        version = {} if function.startswith(HOOK) else {"Qualifier": ALIAS}
        has = client.get_function_configuration(FunctionName=function, **version)["CodeSha256"]
        name = function.removeprefix(HOOK).removeprefix(f"{stack}-")
        if has != own[name]:
            wrong.append(f"{function} runs a package with the SHA-256 {has}, but target/lambda/{name} makes {own[name]}")
    if wrong:
        advice = 'Do not trust the stack. docs/deployment.md says what to do under "Another package"'
        raise Failed("\n".join([f"{stack} is deployed, with other code than that of this machine.", *wrong, advice]))
    print("every function runs the program of this machine")


def digest(program: Path) -> str:
    """Returns the SHA-256 of a package, as Lambda writes it."""
    with zip_folder(str(program), zip_method=make_zip_with_lambda_permissions) as (package, _):
        return b64encode(sha256(Path(package).read_bytes()).digest()).decode()
