"""No two classes of the package have one name: a name in a message or in a review of code means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import ringleader

SOURCE = Path(ringleader.__file__).parent


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
