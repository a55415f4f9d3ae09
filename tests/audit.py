"""Known vulnerabilities of what a user installs, by pip-audit: ``python -m tests.audit`` (``make audit``).

The lock of all extras is audited. Offline, or where the index knows no vulnerabilities, nobody can answer: that is
said, and is no failure.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LOCK = Path(__file__).parents[1] / "runtime.lock"
AUDIT_S = 120.0


def main(arguments: Sequence[str]) -> int:
    """Audit the lock; returns 1 if a vulnerability is known.

    Args:
        arguments: for pip-audit, such as ``--ignore-vuln ID``.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        options = ["--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", f"--output={report}"]
        command = [sys.executable, "-m", "pip_audit", f"--requirement={LOCK}", *options, *arguments]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_S, check=False)
            why = (ended.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
        except subprocess.TimeoutExpired:
            why = f"no answer within {AUDIT_S:g} s"
        text, code = verdict(json.loads(report.read_text()) if report.exists() else {}, why)
    sys.stdout.write(f"{text}\n")
    return code


def verdict(report: Mapping[str, Any], why: str) -> tuple[str, int]:
    """Return what to say, and the exit code.

    Args:
        report: of pip-audit, as JSON; empty if there is none.
        why: the reason, if there is none.
    """
    packages = report.get("dependencies", [])
    audited = [each for each in packages if "skip_reason" not in each]
    if not audited:
        why = next((each["skip_reason"] for each in packages), why)
        return f"THE LOCKED PACKAGES WERE NOT AUDITED, because nobody could answer: {why}", 0
    known = [(each, found) for each in audited for found in each["vulns"]]
    lines = [
        f"{each['name']} {each['version']}: {found['id']}, mended in {' or '.join(found['fix_versions']) or 'none'}"
        for each, found in known
    ]
    lines += [f"Not audited: {each['name']}: {each['skip_reason']}" for each in packages if "skip_reason" in each]
    summary = f"{len(audited)} of {len(packages)} locked packages were audited: {len(known)} known vulnerabilities."
    return "\n".join([*lines, summary]), int(bool(known))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
