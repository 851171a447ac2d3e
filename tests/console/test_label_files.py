"""Label files in the console: shown before they are taken in, read in any encoding, and tried again."""

from __future__ import annotations

import re

import pytest
from served_console import Opened

from ringleader.console.decisions import DecisionStore
from ringleader.errors import StorageError


def test_a_label_file_is_shown_before_it_is_taken_in(opened: Opened) -> None:
    client = opened.client()
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s3", "verdict": "bad"})
    text = "mode,entity,label\nseller,s3,0\nseller,s4,1\nseller,nobody,1\nweek,s1,1\n"
    preview = client.post("/decisions/import", files={"file": ("labels.csv", text)})
    assert (
        preview.status_code == 200 and "Take in 2 labels" in preview.text and "1 decision would change" in preview.text
    )
    assert opened.console.live.store.last == 1
    action = re.search(r'action="(/decisions/import/\w+)"', preview.text)[1]  # type: ignore[index]
    assert client.post(action).status_code == 303
    current = opened.console.live.store.current()
    assert {k[1]: d.verdict for k, d in current.items()} == {"s3": "good", "s4": "bad"}
    assert client.post(action).status_code == 404
    for name, content in (("labels.exe", text), ("labels.csv", "a,b\n1,2\n"), ("../../labels.csv", b"\xff\x00")):
        refused = client.post("/decisions/import", files={"file": (name, content)})
        assert refused.status_code == 422, name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_a_label_file_is_read_in_any_encoding(opened: Opened, encoding: str) -> None:
    text = "mode,entity,label\nseller,s4,1\nseller,caf\u00e9,1\n"
    asked = {"encoding": encoding} if encoding == "latin-1" else {}
    file = {"file": ("labels.csv", text.encode(encoding))}
    preview = opened.client().post("/decisions/import", files=file, data=asked)
    assert preview.status_code == 200 and "Take in 1 label" in preview.text
    if asked:
        refused = opened.client().post("/decisions/import", files=file)
        assert refused.status_code == 422 and "UTF-8" in refused.text
        assert opened.client().post("/decisions/import", files=file, data={"encoding": "runes"}).status_code == 422


def test_an_import_that_found_the_disk_full_is_tried_again_by_the_same_button(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened.client()
    preview = client.post("/decisions/import", files={"file": ("labels.csv", "mode,entity,label\nseller,s4,1\n")})
    action = re.search(r'action="(/decisions/import/\w+)"', preview.text)[1]  # type: ignore[index]

    def full(*arguments: object, **named: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as faulty:
        faulty.setattr(DecisionStore, "append", full)
        assert client.post(action).status_code == 507
    assert client.post(action).status_code == 303
    assert [event.entity for event in opened.console.live.store.events()] == ["s4"]
