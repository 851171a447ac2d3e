"""Nothing that a fit depends on is computed by functions whose last bits depend on the processor.

``ringleader.kernels.elementary``, ``tiles`` and ``eigen`` have them with the same bits everywhere. What stays is named
here with its reason.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ringleader

ROOT = Path(ringleader.__file__).parent
OTHERS = ("baselines", "cli", "console", "datasets", "evaluation", "plot", "report")
"""Packages that compute nothing of a model: what is shown of it, what is beside it."""
NUMPY = {
    *(
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "logaddexp",
        "logaddexp2",
        "power",
        "float_power",
        "cbrt",
    ),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "hypot", "float_power"),
    *("einsum", "dot", "vdot", "inner", "matmul", "tensordot", "convolve", "correlate", "corrcoef", "cov", "polyfit"),
    "linalg",
}
"""Of NumPy: functions that choose their code by the processor, and those that leave sums of products to BLAS."""
MATH = {"exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "gamma", "lgamma", "erf", "erfc", "cbrt"}
MATH |= {"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "hypot", "dist", "sumprod"}
"""Of the C library."""
SAFE = ("scipy.sparse", "scipy.interpolate.BSpline", "scipy.optimize.brentq", "scipy.optimize.minimize_scalar")
"""Of SciPy: sums and products in one order, compiled once for all processors. Everything else is asked about."""
DRAWS = {"normal", "standard_normal", "lognormal", "exponential", "standard_exponential", "gamma", "standard_gamma"}
DRAWS |= {"beta", "dirichlet", "poisson", "binomial", "multivariate_normal", "laplace", "gumbel", "standard_t"}
"""Of NumPy's generators: draws that are made of logarithms and exponentials of the C library."""

UNIQUE = "codes that differ, so that they have one order"
SPARSE = "products with a sparse matrix: loops of SciPy, one code for all processors"
ALLOWED: dict[str, tuple[dict[str, int], str]] = {
    "cores/split.py": ({"@": 1}, SPARSE),
    "judge/neighbours.py": ({"@": 4, "argsort": 1}, f"{SPARSE}; {UNIQUE}"),
    "kernels/cuda/pairs.py": ({"argsort": 1}, UNIQUE),
    "kernels/eigen.py": ({"@": 1}, SPARSE),
    "kernels/numba/matrices.py": ({"@": 1}, "what runs where compilation is turned off, for debuggers"),
    "kernels/single_block.py": (
        {"@": 8, "np.linalg": 3},
        "specification of blocks; lambda and heads bring a solver",
    ),
    "kernels/tiles.py": ({"np.linalg": 3}, "the name of an exception"),
    "model/priors.py": ({".gamma": 1}, "a draw of Gibbs sampling"),
    "model/start.py": ({".standard_normal": 1}, "cut off where a logarithm would enter it"),
    "shares/graphs.py": ({"@": 3}, SPARSE),
    "signals/lockstep/association.py": ({"@": 7}, SPARSE),
    "signals/lockstep/folds.py": ({"argsort": 1}, UNIQUE),
    "signals/lockstep/start.py": ({"@": 4}, SPARSE),
    "signals/lockstep/tastes.py": ({"@": 3}, SPARSE),
    "snapshot/device_choice.py": ({"**": 2}, "squares of whole numbers"),
    "tensor/encode.py": (
        {"argsort": 1},
        "rows of one cell, whose weights are added up and whose times are sorted again",
    ),
    "wording.py": ({"math.log10": 1}, "how many digits are shown"),
}
"""By module what it uses, how often, and why it may."""
LEFT_OUT = ("kernels/reference/", "learners/gibbs.py")
"""The specification of the kernels, which is slow, and the draws of Gibbs sampling: not promised."""


def imported(tree: ast.AST) -> dict[str, str]:
    """Names of a module -> what they stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _unstable(call: ast.Call) -> bool:
    """Whether a call sorts by code that depends on the processor, so that equal values may come in another order."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    kinds = [keyword.value for keyword in call.keywords if keyword.arg == "kind"]
    stable = any(isinstance(kind, ast.Constant) and kind.value == "stable" for kind in kinds)
    return name == "argpartition" or (name in ("argsort", "sort_values") and not stable)


def uses(source: str) -> Iterator[str]:
    """What a module uses that depends on the processor."""
    tree = ast.parse(source)
    names = imported(tree)
    for name in names.values():
        if name.startswith("scipy") and not name.startswith(SAFE):
            yield ".".join(name.split(".")[:2])
        elif name in {f"numpy.{own}" for own in NUMPY} | {f"math.{own}" for own in MATH}:
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = names.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if owner == "numpy" and node.attr in NUMPY:
                yield f"np.{node.attr}"
            elif owner == "math" and node.attr in MATH:
                yield f"math.{node.attr}"
            elif node.attr == "dot":
                yield ".dot"
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in DRAWS:
                yield f".{node.func.attr}"
            elif _unstable(node):
                yield "argsort"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            base = node.left if isinstance(node, ast.BinOp) else node.target
            if not (isinstance(base, ast.Constant) and (base.value == 2 or isinstance(base.value, int))):  # are exact
                yield "**"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield "@"


def test_no_fit_computes_with_functions_that_depend_on_the_processor() -> None:
    seen = {}
    for path in sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in OTHERS):
        name, counted = path.relative_to(ROOT).as_posix(), Counter(uses(path.read_text(encoding="utf-8")))
        if counted and not name.startswith(LEFT_OUT):
            seen[name] = dict(counted)
    assert seen == {path: counted for path, (counted, _) in ALLOWED.items()}


def test_such_functions_are_seen_by_any_name() -> None:
    source = """
import math as m
import numpy as xp
from numpy import linalg
from math import exp as e, sqrt
from scipy.special import expit
x = xp.log(2) + m.exp(1) + m.sqrt(2) + xp.sqrt(2) + 2.0**9
y = x.dot(x) + x @ x + xp.random.default_rng(0).normal()
order = xp.argsort(x), xp.argsort(x, kind="stable"), x.argsort(kind="quicksort")
y @= x
y **= 3
z = x**2 + xp.linalg.norm(x)
"""
    expected = {"numpy.linalg", "math.exp", "scipy.special", "np.log", "np.linalg", ".dot", "@", "**", ".normal"}
    assert set(uses(source)) == {*expected, "argsort"}
    assert list(uses(source)).count("argsort") == 2
