"""The report of an audit: nobody answered, some packages were not known, vulnerabilities were found."""

import pytest

from tests.audit import verdict

CLEAN = {"name": "click", "version": "8.5.1", "vulns": []}
BROKEN = {"name": "jinja2", "version": "3.1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"]}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("report", "said", "code"),
    [
        ({}, "NOT AUDITED, because nobody could answer: no route", 0),
        ({"dependencies": [UNKNOWN]}, "NOT AUDITED, because nobody could answer: Dependency not found", 0),
        ({"dependencies": [CLEAN]}, "1 of 1 locked packages were audited: 0 known", 0),
        ({"dependencies": [CLEAN, UNKNOWN]}, "Not audited: rich: Dependency not found\n1 of 2 locked", 0),
        ({"dependencies": [CLEAN, BROKEN]}, "jinja2 3.1.0: PYSEC-1, mended in 3.1.6\n2 of 2 locked", 1),
    ],
)
def test_what_an_audit_says(report: dict[str, list[object]], said: str, code: int) -> None:
    text, found = verdict(report, "no route")
    assert said in text
    assert found == code
