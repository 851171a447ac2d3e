"""Writes docs/reference/python.md and cli.md as plain pages, so that they read on a code host too.

Run it after a change of a public signature, a docstring, a command or an option: ``python tools/reference.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
METHODS = (
    *("fit", "partial_fit", "scores", "scores_by_code", "explain", "contributions", "cores", "report", "save"),
    *("lockstep", "inputs", "suspicion", "evidence", "review_evidence", "model_config"),
)
SECTIONS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "Detector": (("ringleader.detector:RingDetector", METHODS), ("ringleader.detector:load", ())),
    "Reading": (
        ("ringleader.tensor.encode:read_reviews", ()),
        ("ringleader.tensor.sparse:SparseTensor", ("degrees", "grouping", "decode", "vocabulary", "from_arrays")),
        ("ringleader.known.labels:read_labels", ()),
        ("ringleader.known.labels:Labels", ("align", "split", "merged", "to_frame")),
        ("ringleader.known.covariates:read_covariates", ()),
    ),
    "Results": (
        ("ringleader.explain:Explanation", ("reasons", "partners", "lines", "to_dict")),
        ("ringleader.explain:account", ()),
        ("ringleader.explain:Account", ("label", "judged")),
        ("ringleader.explain.parts:AccountReviews", ("page",)),
        ("ringleader.cores:Cores", ("frame", "members_frame", "reviews_frame", "of")),
        ("ringleader.cores:Core", ()),
        ("ringleader.signals.evidence:ReviewEvidence", ()),
        ("ringleader.signals.lockstep:Lockstep", ("entity_scores",)),
        ("ringleader:evaluate", ()),
    ),
    "Plots": tuple(
        (f"ringleader.plot:{name}", ())
        for name in (
            *("account", "calibration", "components", "core", "precision_recall", "ratings", "roc", "scores"),
            *("timeline", "training"),
        )
    ),
    "Settings": (("ringleader.model.config:ModelConfig", ("preset", "replace")),),
    "Errors": (("ringleader:RingleaderError", ()), ("ringleader:RingleaderWarning", ())),
}


def python_reference() -> str:
    """The public names, from their signatures and docstrings."""
    parts = [
        "# Python\n\nWritten from the docstrings by `tools/reference.py`. What is on this page is what to rely on; "
        "everything else may change.\n"
    ]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        for place, members in names:
            module, name = place.split(":")
            value = getattr(importlib.import_module(module), name)
            parts.append(_entry(name, value, 3))
            parts += [_entry(f"{name}.{m}", inspect.getattr_static(value, m), 4) for m in members]
    return "\n".join(parts)


def _entry(name: str, value: Any, level: int) -> str:
    target = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    text = inspect.cleandoc(target.__doc__ or "")
    try:
        signature = "" if isinstance(value, property) else str(inspect.signature(target))
    except (TypeError, ValueError):
        signature = ""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)  # annotations are kept as text
    return f"{'#' * level} {name}\n\n```text\n{name}{plain}\n\n{text}\n```\n"


def cli_reference() -> str:
    """The help of every command."""
    place = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert place is not None and place.loader is not None
    hooks = importlib.util.module_from_spec(place)
    place.loader.exec_module(hooks)
    text: str = hooks.command_reference()
    return text


if __name__ == "__main__":
    (DOCS / "reference" / "python.md").write_text(python_reference(), encoding="utf-8", newline="\n")
    (DOCS / "reference" / "cli.md").write_text(cli_reference(), encoding="utf-8", newline="\n")
