"""What two model folders must have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ringleader.snapshot.pieces import files_of


def folder_bytes(folder: Path) -> dict[str, Any]:
    """Every file of a model folder; of the manifest all but the times of batches, and its own checksum."""
    files: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(files["manifest.json"])
    del manifest["sha256"]
    for batch in manifest["meta"]["batches"]:
        del batch["at"]
    return files | {"manifest.json": manifest}


def model_content(folder: Path) -> dict[str, Any]:
    """What a model folder says, but for the times of batches and the numbers in the names of its files."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for batch in manifest["meta"]["batches"]:
        del batch["at"]
    files = {part: [file["sha256"] for file in files_of(entry)] for part, entry in manifest["files"].items()}
    return {"meta": manifest["meta"] | {"generation": 0}, "files": files}
