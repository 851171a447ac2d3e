"""Writes a bill of materials, and asks for known vulnerabilities of the packages in constraints.txt.

python tools/audit.py build                                                                          (make audit)

Where the database of vulnerabilities cannot be reached, it says so and fails: what was not audited must not pass for
audited. The bill of materials is written all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


def bill_of_materials(target: Path) -> int:
    """Writes the packages of this environment as CycloneDX; returns how many there are."""
    line = [BIN / "cyclonedx-py", "environment", "--output-reproducible", "--output-format", "JSON"]
    subprocess.run([*line, "--output-file", target, sys.executable], check=True, capture_output=True)
    return len(json.loads(target.read_text())["components"])


def audit() -> list[dict[str, Any]]:
    """What is known of every package: name, version, vulns, or why it was skipped."""
    line = [BIN / "pip-audit", "--requirement", ROOT / "constraints.txt", "--require-hashes", "--disable-pip"]
    done = subprocess.run([*line, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True)
    if not done.stdout.strip():
        raise SystemExit(f"pip-audit did not answer: {done.stderr.strip().splitlines()[-1:]}")
    packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return packages


def verdict(packages: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Exit status and what to say."""
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    found = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, mended in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version yet'}"
        for package in packages
        for vulnerability in package.get("vulns", [])
    ]
    if len(skipped) == len(packages):
        return 1, [f"NOT AUDITED: the database of vulnerabilities was not reached for any of {len(packages)} packages"]
    said = [f"{len(packages) - len(skipped)} packages audited, {len(found)} known vulnerabilities", *found]
    if skipped:
        said.append(f"NOT AUDITED: {len(skipped)} packages that the database does not know: {', '.join(skipped)}")
    return int(bool(found or skipped)), said


def main() -> None:
    target = ROOT / sys.argv[1] / "sbom.json"
    target.parent.mkdir(exist_ok=True)
    print(f"{bill_of_materials(target)} components written to {target.relative_to(ROOT)}")
    status, said = verdict(audit())
    print("\n".join(said))
    raise SystemExit(status)


if __name__ == "__main__":
    main()
