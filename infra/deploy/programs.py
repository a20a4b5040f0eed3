"""The functions' programs, as they were built."""

from settings import ROOT, Failed

PROGRAMS = ROOT / "target/lambda"
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
