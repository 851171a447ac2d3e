"""Names of the package: no two classes have one, and no variable one that could stand for anything."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import ringleader

SOURCE = Path(ringleader.__file__).parent
MEANINGLESS = {"found", "given", "kept", "told", "plain"}


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_variable_has_a_name_that_says_nothing() -> None:
    meaningless = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in MEANINGLESS
            if stored or (isinstance(node, ast.arg) and node.arg in MEANINGLESS):
                meaningless.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert meaningless == []
