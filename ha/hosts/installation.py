"""This installation, whose files may be replaced while processes run that have loaded them."""

from pathlib import Path

HOME = Path(__file__).parents[2]
NEEDED = tuple(HOME / each for each in ("ha/sidecar/command/guard.py", "ha/program/deadline_file.py", "store/clock.py"))
"""Of what a sidecar has not loaded and needs when it starts its command."""


def gone() -> str:
    """Return a sentence if a file is gone that the next command needs; empty if all are there."""
    missing = next((each for each in NEEDED if not each.exists()), None)
    if missing is None:
        return ""
    return f"{missing} is gone: this installation was replaced while its processes ran. Start the sidecar anew."


def installed() -> set[str]:
    """Return the versions that are installed where these files are; none if they are sources, or are being replaced."""
    return {each.stem.removeprefix("hybrid_ha-") for each in HOME.glob("hybrid_ha-*.dist-info")}


LOADED = installed()
"""What this process runs."""


def replaced() -> str:
    """Return a sentence if files are gone, or another version is installed than this process runs; empty if not."""
    present = installed()
    if lack := gone():
        return lack
    if not present or not LOADED or present & LOADED:
        return ""
    return (
        f"This process runs version {min(LOADED)} of hybrid-ha, and {max(present)} is installed in {HOME} now, which "
        "its next command would be started with: start this process anew."
    )
