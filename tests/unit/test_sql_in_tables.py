"""Only the package ``tables`` knows DuckDB and holds SQL. The one exception is the log of decisions, in SQLite."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ringleader

SOURCE = Path(ringleader.__file__).parent
DECISIONS = SOURCE / "console" / "decisions.py"
"""The one other module that holds SQL: what people decided is no review, and is kept in a database of its own."""
SQL = re.compile(
    r"\bSELECT\b.*\bFROM\b|\b(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?(TEMP\w*\s+)?(TABLE|VIEW)\b|\bINSERT\s+INTO\b"
    r"|\bJOIN\b.*\bON\b|\bGROUP\s+BY\b|\bORDER\s+BY\b|\bUNION\s+ALL\b|^\s*SELECT\b",
    re.DOTALL,
)


def documentation(tree: ast.AST) -> set[ast.AST]:
    """The strings that are statements of their own: docstrings."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string literal but docstrings; of formatted ones the fixed text, with a gap for each value."""
    skipped = documentation(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and node not in skipped:
            skipped |= set(node.values)
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else " _ " for v in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value


def offences(code: str) -> list[str]:
    tree = ast.parse(code)
    bad = [f"SQL: {text[:60]!r}" for text in texts(tree) if SQL.search(text)]
    for node in ast.walk(tree):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.append(node.module)
        bad += [f"imports {name}" for name in imported if name.partition(".")[0] == "duckdb"]
        if isinstance(node, ast.Attribute) and node.attr == "connection":
            bad.append("touches a connection")
    return bad


def test_sql_and_the_database_stay_in_tables() -> None:
    outside = [
        path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "tables" and path != DECISIONS
    ]
    assert len(outside) > 100
    by_module = {str(path.relative_to(SOURCE)): offences(path.read_text()) for path in outside}
    assert {path: bad for path, bad in by_module.items() if bad} == {}


@pytest.mark.parametrize("name", ["coding.py", "check.py", "read.py", "relation.py"])
def test_the_search_finds_what_is_in_tables(name: str) -> None:
    assert offences((SOURCE / "tables" / name).read_text())


@pytest.mark.parametrize(
    ("code", "many"),
    [
        ('rows(f"SELECT {x} FROM {t}")', 1),
        ('rows("CREATE TABLE a AS " + other)', 1),
        ("import duckdb", 1),
        ("def f():\n    from duckdb import connect", 1),
        ("relation.connection.execute(query)", 1),
        ('def f():\n    """Same as: SELECT x FROM y."""', 0),
        ('say("select a row from the table")', 0),
        ("say('Select a mode from those below')", 0),
    ],
)
def test_statements_are_told_from_sentences(code: str, many: int) -> None:
    assert len(offences(code)) == many
