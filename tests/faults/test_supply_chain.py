"""What is said of the packages: an audit that could not be made does not pass for one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from audit import verdict

CLEAN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "not found"}
BAD = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}


def test_an_audit_without_its_database_fails_and_says_so() -> None:
    status, said = verdict([SKIPPED, SKIPPED])
    assert status == 1
    assert said == ["NOT AUDITED: the database of vulnerabilities was not reached for any of 2 packages"]


def test_a_known_vulnerability_and_a_package_that_nobody_knows_fail_too() -> None:
    assert verdict([CLEAN])[0] == 0
    status, said = verdict([CLEAN, BAD])
    assert status == 1
    assert said[1] == "c 2: CVE-1, mended in 3"
    status, said = verdict([CLEAN, SKIPPED])
    assert status == 1
    assert said[-1] == "NOT AUDITED: 1 packages that the database does not know: b"
