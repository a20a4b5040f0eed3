"""Compiles the samples of the docs page, and runs each against the service."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.request import urlopen

from tools import ENVIRONMENT, HERE, MADE, NODE, Failed, run

WALK = HERE.parents[2] / "docs/clients/walk.mts"
GO = MADE / "samples/go"
PYTHON = MADE / "samples/python"
RUST = MADE / "samples/rust"
# Within the folder of Node's packages, where samples find the types of Node.
TYPESCRIPT = NODE / "samples"
# Where the sample of each language is written, and how it is started.
LANGUAGES = {
    "curl": (MADE / "samples/curl", "{}.sh", ["sh", "{}.sh"]),
    "Python": (PYTHON, "{}.py", ["python", "{}.py"]),
    "TypeScript": (TYPESCRIPT, "{}.mts", ["node", "{}.mts"]),
    "Rust": (RUST, "src/bin/{}.rs", [MADE / "rust/debug/{}"]),
    "Go": (GO, "{}/main.go", [GO / "built/{}"]),
}


class Page(HTMLParser):
    """Collects the samples: the code of each disclosure within an element of the class `samples`, by its summary."""

    def __init__(self):
        super().__init__()
        self.operations, self.language, self.open = [], "", []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if ("class", "samples") in attrs:
            self.operations.append({})

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        within = self.open[-2:]
        if within == ["details", "summary"]:
            self.language = data
        elif within == ["pre", "code"] and "details" in self.open and self.language in LANGUAGES:
            self.operations[-1][self.language] = self.operations[-1].get(self.language, "") + data


def write(service):
    """Writes the samples of the served page to files. Returns their names."""
    with urlopen(f"{service.base_url}/docs") as response:
        page = Page()
        page.feed(response.read().decode())
    for folder, _, _ in LANGUAGES.values():
        shutil.rmtree(folder, ignore_errors=True)
    for number, samples in enumerate(page.operations):
        if list(samples) != list(LANGUAGES):
            raise Failed(f"operation {number} of the docs page has samples in {', '.join(samples)}")
        for language, sample in samples.items():
            folder, path, _ = LANGUAGES[language]
            file = folder / path.format(name(number))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(sample + "\n")
    return [name(number) for number in range(len(page.operations))]


def name(number):
    return f"sample_{number}"


def check():
    """Compiles the samples, and the guide's program in TypeScript, under strict settings."""
    shutil.copy(WALK, TYPESCRIPT)
    settings = json.loads((HERE / "tsconfig.json").read_text())
    # `process.env.NAME` is how everybody reads an environment variable.
    settings["compilerOptions"] |= {"noEmit": True, "noPropertyAccessFromIndexSignature": False}
    settings["include"] = ["*.mts"]
    (TYPESCRIPT / "tsconfig.json").write_text(json.dumps(settings))
    run("tsc", "--project", TYPESCRIPT)
    for file in ["Cargo.toml", "Cargo.lock"]:
        shutil.copy(HERE / "samples" / file, RUST)
    run("cargo", "build", "--locked", "--manifest-path", RUST / "Cargo.toml", CARGO_TARGET_DIR=MADE / "rust")
    shutil.copy(HERE / "go/go.mod", GO)
    (GO / "built").mkdir()
    run("go", "vet", "-C", GO, "./...")
    run("go", "build", "-C", GO, "-o", "built", "./...")


def try_all(service, names):
    """Runs every sample. Each must be answered with a 200."""
    own = ENVIRONMENT | {"API_KEY": service.new_key()}
    for language, (folder, path, command) in LANGUAGES.items():
        for sample in names:
            words = [str(word).format(sample) for word in command]
            done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, timeout=60, check=False)
            # curl prints a refusal, and ends with 0.
            refused = language == "curl" and re.match(r'\s*{"error"', done.stdout)
            if done.returncode != 0 or not done.stdout or refused:
                raise Failed(f"{language}, {' '.join(words)}\n{done.stdout}{done.stderr}")
            if language != "curl" and "API_KEY" in (folder / path.format(sample)).read_text():
                tells_a_refusal(language, words, folder, own)


def tells_a_refusal(language, words, folder, own):
    """Runs a sample with a key that nobody has. It must fail, and say why."""
    wrong = own | {"API_KEY": "sk_wrong"}
    done = subprocess.run(words, cwd=folder, env=wrong, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0 or "api_keys.invalid" not in done.stderr:
        raise Failed(f"{language}, {' '.join(words)}: not told why it was refused\n{done.stdout}{done.stderr}")
