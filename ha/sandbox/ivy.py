"""Ivy, which comes with PySpark: it fetches jars from the package registry that it knows."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ha.sandbox.polling import SandboxError

FETCH_TIMEOUT_S = 300

Module = tuple[str, str, str]
"""Organisation, module and revision."""


def retrieve(java: Path, spark: Path, folder: Path, modules: Sequence[Module], *, transitive: bool = False) -> None:
    """Fetch the jars of modules into a folder.

    Args:
        java: the Java to run Ivy with.
        spark: PySpark's folder of jars, where Ivy is.
        folder: receives the jars.
        modules: which ones.
        transitive: also fetch all that they need.

    Raises:
        SandboxError: there is no network, or it took too long.
    """
    ivy = next(iter(sorted(spark.glob("ivy-*.jar"))), None)
    if ivy is None:
        raise SandboxError(f"PySpark's jars in {spark} lack Ivy: install pyspark 4.3 again.")
    name = ", ".join(f"{module}-{revision}" for _, module, revision in modules)
    try:
        # Ivy writes everything there: it leaves nothing in the user's home.
        with tempfile.TemporaryDirectory(prefix="ivy-", dir=folder.parent) as home:
            wanted = Path(home, "wanted.xml")
            wanted.write_text(_description(modules, transitive=transitive), encoding="utf-8")
            command = [
                *(str(java), f"-Divy.home={home}", f"-Divy.default.ivy.user.dir={home}"),
                *("-jar", str(ivy), "-cache", home, "-m2compatible", "-ivy", str(wanted), "-confs", "default"),
                *("-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"),
            ]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"Fetching {name} took more than {FETCH_TIMEOUT_S} seconds.") from error
    if ended.returncode != 0:
        raise SandboxError(f"{name} could not be fetched, is there a network? {_reason(ended)}")


def _description(modules: Sequence[Module], *, transitive: bool) -> str:
    """Return an Ivy file that depends on these modules."""
    wanted = "".join(
        f'<dependency org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(revision)} conf="default" '
        f'transitive="{str(transitive).lower()}"/>'
        for organisation, name, revision in modules
    )
    return (
        '<ivy-module version="2.0"><info organisation="ha" module="sandbox"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )


def _reason(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the first informative line of Ivy's output."""
    telling = ("Host ", "UnknownHost", "ERROR", "not found", "onnection", "timed out", "SSL", "FAILED", "rror:")
    lines = [line.strip() for line in (ended.stdout + ended.stderr).splitlines()]
    said = [line for line in lines if any(word in line for word in telling)]
    return f"Ivy says: {said[0]}" if said else f"Ivy ended with exit code {ended.returncode} and gave no reason."
