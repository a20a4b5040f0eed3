"""Makes Python virtual environments below target/ from requirements files."""

import os
import sys
from pathlib import Path

from steps import HOME, run


def environment(name: str, *requirements: Path) -> Path:
    """Returns the folder of programs of an environment made from these files. Makes it anew if they have changed."""
    folder, wanted = HOME / name, "".join(file.read_text() for file in requirements)
    installed = folder / "installed"
    if not installed.exists() or installed.read_text() != wanted:
        run(name, [sys.executable, "-m", "venv", "--clear", str(folder)], dict(os.environ))
        pip = [str(folder / "bin" / "pip"), "install", "--disable-pip-version-check"]
        run(name, [*pip, *(f"--requirement={file}" for file in requirements)], dict(os.environ))
        installed.write_text(wanted)
    return folder / "bin"
