"""What every baseline promises, run over every name of the registry."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ringleader.baselines.factor_scores import factor_scores, normal_form
from ringleader.baselines.registry import baseline, baseline_names, baseline_needs_labels, baseline_summary
from ringleader.errors import LabelError, SettingsError
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

NAMES = baseline_names()
QUICK = {
    "bptf": {"rank": 3, "max_iter": 5},
    "bnbcp": {"rank": 3, "max_iter": 5},
    "bnbcp-svi": {"rank": 3, "n_epochs": 2},
    "boosting": {"max_iter": 5},
    "forest": {"n_estimators": 5},
    **{name: {"rank": 3, "epochs": 2} for name in NAMES if name.startswith("ss-")},
    **{name: {"rank": 3, "epochs": 2} for name in ("logistic-cp", "ringleader")},
}


def codes_of(modes: int, rows: int = 150, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    return np.stack([g.integers(0, n, rows) for n in (20, 15, 8, 5, 12, 4)[:modes]], axis=1)


def tensor_of(codes: np.ndarray) -> SparseTensor:
    sizes = (20, 15, 8, 5, 12, 4)[: codes.shape[1]]
    modes = ("reviewer", "week", "product", "rating", "seller", "country")[: codes.shape[1]]
    table = SparseTensor.from_arrays(codes, modes, sizes=sizes)
    ids = tuple(Vocabulary.of_ids(m, [f"{m} {i:02d}" for i in range(n)]) for m, n in zip(modes, sizes, strict=True))
    return SparseTensor(table.coordinates, table.counts, ids)


def quick(name: str, **settings: object):
    return baseline(name, **{**QUICK.get(name, {}), **settings})


def known(name: str, tensor: SparseTensor):
    """Every other entity bad, for methods that cannot do without labels."""
    if not baseline_needs_labels(name):
        return None
    return {mode: np.arange(size) % 2 for mode, size in zip(tensor.modes, tensor.shape, strict=True)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("modes", [2, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4, 6))])
def test_scores_of_every_mode_are_finite_and_repeatable(name, modes):
    tensor = tensor_of(codes_of(modes))
    model = quick(name)
    labels = known(name, tensor)
    assert model.fit(tensor, labels) is model
    for mode, size in zip(tensor.modes, tensor.shape, strict=True):
        scores = model.scores(mode)
        assert scores.shape == (size,) and scores.dtype == np.float64
        assert np.isfinite(scores).all()
        np.testing.assert_array_equal(clone(model).fit(tensor, labels).scores(mode), scores)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows_does_not_matter(name):
    codes = codes_of(4)
    shuffled = codes[np.random.default_rng(5).permutation(len(codes))]
    first, second = (quick(name).fit(t, known(name, t)) for t in (tensor_of(codes), tensor_of(shuffled)))
    for mode in ("reviewer", "product"):
        np.testing.assert_array_equal(first.scores(mode), second.scores(mode))


@pytest.mark.parametrize("name", NAMES)
def test_callback_hears_of_every_step(name):
    heard = []
    tensor = tensor_of(codes_of(3))
    quick(name).fit(tensor, known(name, tensor), callback=heard.append)
    assert heard
    assert [p.step for p in heard] == list(range(1, len(heard) + 1))
    assert all(p.step <= p.total for p in heard)


@pytest.mark.parametrize("name", NAMES)
def test_misuse_is_named(name):
    tensor = tensor_of(codes_of(3))
    with pytest.raises(NotFittedError, match="call fit first"):
        quick(name).scores("reviewer")
    with pytest.raises(SettingsError, match="no mode 'shop'"):
        quick(name).fit(tensor, known(name, tensor)).scores("shop")
    with pytest.raises(SettingsError, match="SparseTensor"):
        quick(name).fit(codes_of(3))
    with pytest.raises(SettingsError, match=f"unknown setting nonsense; baseline {name} has .*random_state"):
        baseline(name, nonsense=1)
    with pytest.raises(LabelError, match="the mode has 20"):
        quick(name).fit(tensor, {"reviewer": [1.0, 0.0]})
    with pytest.raises(LabelError, match="hold 7"):
        quick(name).fit(tensor, {"reviewer": np.full(20, 7.0)})
    assert baseline_summary(name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mzoom", {"density": "dense"}),
        ("mzoom", {"n_blocks": 0}),
        ("mzoom", {"min_size": 10, "max_size": 5}),
        ("mzoom", {"ties": "coin"}),
        ("bptf", {"rank": 0}),
        ("bptf", {"rank": 2.5}),
        ("bptf", {"alpha": -1.0}),
        ("bptf", {"alpha": float("nan")}),
        ("bptf", {"scoring": "best"}),
        ("bptf", {"random_state": -3}),
        ("bnbcp", {"inference": "gibbs"}),
        ("bnbcp", {"epsilon": 1.0}),
        ("bnbcp-svi", {"delay": 0.5}),
        ("bnbcp-svi", {"delay": 1.0}),
        ("bnbcp-svi", {"decay": 1.5}),
        ("crossspot", {"seeding": "none"}),
        ("multiaspect", {"spike": 0.0}),
        ("burst", {"window": 0}),
        ("degree", {"weight": "money"}),
        ("logistic-cp", {"preset": "best"}),
        ("logistic-cp", {"scoring": "best"}),
        ("ringleader", {"learner": "guess"}),
    ],
)
def test_settings_without_sense_are_refused_by_fit(name, settings):
    model = baseline(name, **settings)  # the constructor only assigns
    with pytest.raises(SettingsError, match=next(iter(settings)) if len(settings) == 1 else "max_size"):
        model.fit(tensor_of(codes_of(3)))


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_constrained_but_those_that_depend_on_the_tensor(name):
    model = baseline(name)
    free = {"extra", "settings", "modes", "time_mode", "rating_mode"}
    assert set(model.get_params()) - free == set(model.constraints)
    for setting, constraint in model.constraints.items():
        assert constraint.allows(model.get_params()[setting]), f"the default of {setting}"
        assert not constraint.allows(object())


def test_a_setting_of_several_kinds_is_refused_with_all_of_them():
    with pytest.raises(SettingsError, match="max_features is 'all'; choose sqrt, log2, or a number above 0 and of at"):
        baseline("forest", max_features="all").fit(tensor_of(codes_of(3)))


def test_an_unknown_name_lists_the_known():
    with pytest.raises(SettingsError, match="mzoom"):
        baseline("zoom")


def test_empty_and_zero_tensors_are_refused():
    vocabularies = (Vocabulary.of_ids("a", ["x"]), Vocabulary.of_ids("b", ["y"]))
    empty = SparseTensor(np.empty((0, 2), np.int32), np.empty(0, np.int64), vocabularies)
    zero = SparseTensor(np.zeros((1, 2), np.int32), np.zeros(1, np.int64), vocabularies)
    for tensor, said in ((empty, "no cells"), (zero, "at least 1")):
        with pytest.raises(SettingsError, match=said):
            baseline("degree").fit(tensor)


def test_one_cell_is_enough_for_every_baseline():
    tensor = SparseTensor.from_arrays([[0, 0, 0]], ["reviewer", "product", "week"], counts=[3])
    for name in baseline_names(needs_labels=False):
        assert np.isfinite(quick(name).fit(tensor).scores("product")).all()


def test_methods_that_need_labels_say_so():
    for name in baseline_names(needs_labels=True):
        with pytest.raises(LabelError, match="label"):
            quick(name).fit(tensor_of(codes_of(3)))


def test_factor_scores_do_not_depend_on_how_a_component_is_scaled():
    g = np.random.default_rng(0)
    factors = [g.random((6, 3)), g.random((5, 3))]
    unscaled = normal_form(np.ones(3), factors)
    scaled = normal_form(np.full(3, 0.1), [factors[0] * 5.0, factors[1] * 2.0])
    for scoring in ("largest", "divergence"):
        np.testing.assert_allclose(factor_scores(unscaled, 0, scoring), factor_scores(scaled, 0, scoring))
    expected = (factors[0] * np.linalg.norm(factors[1], axis=0)).max(axis=1)
    np.testing.assert_allclose(factor_scores(unscaled, 0), expected)


def test_the_registry_imports_no_method():
    code = "import sys, ringleader.baselines.registry; print('sklearn' in sys.modules, 'numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]
