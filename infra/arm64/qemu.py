"""What runs arm64 binaries on a machine of another architecture: an emulator, and the libraries of an arm64 system. They
are the machine's own, or come from Debian's or Ubuntu's packages, unpacked below target/arm64 without root."""

import os
import shutil
from pathlib import Path

from steps import ROOT, Failed, run

HOME = ROOT / "target" / "arm64"
# Statically linked, so they need no other packages. Newer distributions have the emulator only in the last one.
PACKAGES = ["libc6-arm64-cross", "qemu-user-static", "qemu-user"]
EMULATORS = ["usr/bin/qemu-aarch64-static", "usr/bin/qemu-aarch64"]
# Where an arm64 system is, and what must be there.
SYSTEM, LOADER = "usr/aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1"


def command() -> list[str]:
    """Returns the command that runs an arm64 binary. Installs what it needs the first time."""
    here = HOME / "system"
    found = find(Path("/")) or find(here)
    if not found:
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            raise Failed(f"install /{EMULATORS[1]} and, in /{SYSTEM}, the libraries of an arm64 system with glibc")
        unpack(here)
        found = find(here)
    if not found:
        raise Failed(f"no emulator of arm64 in the packages {', '.join(PACKAGES)}")
    return found


def find(root: Path) -> list[str] | None:
    emulators = [root / emulator for emulator in EMULATORS if (root / emulator).exists()]
    is_complete = emulators and (root / SYSTEM / LOADER).exists()
    return [str(emulators[0]), "-L", str(root / SYSTEM)] if is_complete else None


def unpack(root: Path) -> None:
    """Unpacks the packages into a folder until it has all that is needed."""
    packages = HOME / "packages"
    # Lists of our own, because the machine's may be missing or old, and only root may update them.
    folders = {"Dir::State::lists": packages / "lists", "Dir::Cache": packages / "cache"}
    for folder in folders.values():
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    apt = ["env", "--chdir", str(packages), "apt-get", *(f"-o{name}={folder}" for name, folder in folders.items())]
    run("arm64-lists", [*apt, "update"], dict(os.environ))
    for package in PACKAGES:
        run("arm64-download", [*apt, "download", package], dict(os.environ))
        for file in packages.glob(f"{package}_*.deb"):
            run("arm64-unpack", ["dpkg-deb", "--extract", str(file), str(root)], dict(os.environ))
        if find(root):
            break
    shutil.rmtree(packages)
