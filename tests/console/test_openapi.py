"""What the documentation says of the JSON interface is what it is; what was vendored is what was published."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

import ringleader.console

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(ringleader.console.__file__).parent
VENDOR = PACKAGE / "static" / "vendor"


def test_the_openapi_file_is_of_these_routes() -> None:
    place = importlib.util.spec_from_file_location("openapi_tool", ROOT / "tools" / "openapi.py")
    assert place is not None and place.loader is not None
    tool = importlib.util.module_from_spec(place)
    place.loader.exec_module(tool)
    stored = json.loads(tool.FILE.read_text(encoding="utf-8"))
    made = json.loads(tool.openapi())
    assert sorted(stored["paths"]) == sorted(made["paths"])
    assert all(path.startswith("/api/v1/") for path in made["paths"])
    for path, methods in made["paths"].items():
        for method, about in methods.items():
            names = [p["name"] for p in about.get("parameters", [])]
            assert names == [p["name"] for p in stored["paths"][path][method].get("parameters", [])], (path, method)
            assert set(about["responses"]) == set(stored["paths"][path][method]["responses"])
    for name, schema in made["components"]["schemas"].items():
        if not name.startswith(("HTTPValidation", "ValidationError")):  # FastAPI's own, which follow its version
            assert list(stored["components"]["schemas"][name]["properties"]) == list(schema["properties"]), name


@pytest.mark.parametrize(
    ("folder", "licences"),
    [(VENDOR, {"htmx.LICENSE", "uplot.LICENSE"}), (Path(__file__).parents[1] / "axe", {"LICENSE"})],
)
def test_every_vendored_file_has_its_checksum_and_its_licence(folder: Path, licences: set[str]) -> None:
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    there = {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    assert sums.keys() == there and licences <= there
    for name, digest in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("template", sorted((PACKAGE / "templates").glob("*.j2")), ids=lambda path: path.name)
def test_no_template_holds_script_or_style_of_its_own(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    for script in re.findall(r"<script\b[^>]*>", text):
        assert 'src="/static/' in script
    assert "<style" not in text and not re.search(r"\s(style|on\w+)=", text)
    assert "|safe" not in text and "hx-on" not in text and "hx-vals" not in text
    assert not re.search(r"(src|href|action)=\"https?:", text)
