"""Compares what the functions of a stack run with the programs in target/lambda.

CloudFormation takes a function's package from a bucket that other stacks of the account use as well. Lambda says which
package it has got.
"""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import boto3
from samcli.lib.package.utils import make_zip_with_lambda_permissions, zip_folder

from programs import PROGRAMS
from settings import Failed
from versions import ALIAS, functions

HOOK = "CodeDeployHook_"


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
