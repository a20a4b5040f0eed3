"""How each client is generated, compiled and started. The programs that use them are the examples beside this file."""

import shutil

import rendition
from tools import HERE, MADE, NODE, run

DESCRIPTION = MADE / "description.json"
# For tools that do not know OpenAPI 3.1.
RENDITION = MADE / "description-3.0.json"
COLLECTION = MADE / "collection.json"


def typescript():
    """Makes both TypeScript clients, and compiles them together."""
    for name in ["openapi_fetch", "hey_api"]:
        shutil.rmtree(NODE / name, ignore_errors=True)
        shutil.copytree(HERE / name, NODE / name)
    for name in ["receiver.ts", "tsconfig.json"]:
        shutil.copy(HERE / name, NODE)
    run("openapi-typescript", DESCRIPTION, "--output", NODE / "openapi_fetch/generated.ts")
    run("openapi-ts", "--file", HERE / "hey_api/openapi-ts.config.js")
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


def rust():
    manifest, variables = HERE / "rust/Cargo.toml", {"CARGO_TARGET_DIR": MADE / "rust", "DESCRIPTION": RENDITION}
    run("cargo", "build", "--locked", "--manifest-path", manifest, **variables)


def go():
    folder = MADE / "go"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "go", folder)
    generate = ["openapi-generator-cli", "generate", "--generator-name", "go", "--input-spec", DESCRIPTION]
    run(*generate, "--config", HERE / "go/generator.json", "--output", folder / "market")
    run("go", "vet", "-C", folder, "./...")
    run("go", "build", "-C", folder, "-o", "client", ".")


# The program of each client.
PROGRAMS = {
    "openapi-typescript and openapi-fetch": ["node", NODE / "built/openapi_fetch/client.js"],
    "@hey-api/openapi-ts": ["node", NODE / "built/hey_api/client.js"],
    "openapi-python-client": ["python", MADE / "python_client/client.py"],
    "progenitor (Rust)": [MADE / "rust/debug/client"],
    "openapi-generator (Go)": [MADE / "go/client"],
}
# What generates and compiles them.
BUILDS = {"TypeScript": typescript, "Python": python, "Rust": rust, "Go": go}


def render():
    """Makes the OpenAPI 3.0 rendition of the description, and the Postman collection of that."""
    rendition.render(DESCRIPTION, RENDITION)
    for document in [DESCRIPTION, RENDITION]:
        run("openapi-spec-validator", "--errors", "all", document)
    options = "folderStrategy=Tags,parametersResolution=Example"
    run("openapi2postmanv2", "--spec", RENDITION, "--output", COLLECTION, "--options", options)
