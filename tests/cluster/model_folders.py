"""What two model folders must have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def folder_bytes(folder: Path) -> dict[str, Any]:
    """Every file of a model folder; of the manifest all but the times of batches, and its own checksum."""
    files: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(files["manifest.json"])
    del manifest["sha256"]
    for batch in manifest["meta"]["batches"]:
        del batch["at"]
    return files | {"manifest.json": manifest}
