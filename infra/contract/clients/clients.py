"""How each client is generated, compiled and started. The programs that use them are in the folders beside this file."""

import shutil

from tools import HERE, MADE, NODE, run

DESCRIPTION = MADE / "description.json"


def typescript():
    folder = NODE / "typescript"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "typescript", folder)
    shutil.copy(HERE / "tsconfig.json", NODE)
    run("openapi-typescript", DESCRIPTION, "--output", folder / "generated.ts")
    run("tsc", "--project", NODE)


def python():
    folder = MADE / "python_client"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    config = HERE / "python/generator.yaml"
    generate = ["openapi-python-client", "generate", "--meta", "none", "--fail-on-warning"]
    run(*generate, "--config", config, "--path", DESCRIPTION, "--output-path", folder / "market")
    shutil.copy(HERE / "python/client.py", folder)
    run("mypy", "--config-file", HERE / "python/mypy.ini", "--cache-dir", folder / ".mypy_cache", folder, MYPYPATH=folder)


def go():
    folder = MADE / "go"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "go", folder)
    generate = ["openapi-generator-cli", "generate", "--generator-name", "go", "--input-spec", DESCRIPTION]
    (folder / "market").mkdir()
    shutil.copy(HERE / "go/ignore", folder / "market/.openapi-generator-ignore")
    run(*generate, "--config", HERE / "go/generator.json", "--output", folder / "market")
    run("go", "vet", "-C", folder, "./...")
    run("go", "build", "-C", folder, "-o", "client", ".")


# The program of each client.
PROGRAMS = {
    "openapi-typescript and openapi-fetch": ["node", NODE / "built/client.js"],
    "openapi-python-client": ["python", MADE / "python_client/client.py"],
    "openapi-generator (Go)": [MADE / "go/client"],
}
# What generates and compiles them.
BUILDS = {"TypeScript": typescript, "Python": python, "Go": go}
