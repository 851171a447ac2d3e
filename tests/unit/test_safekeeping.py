"""What a kill, a wrong folder or an edited file must not do to a model, and settings that must not be ignored."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.errors import LabelError, ModelFileError, SettingsError
from ringleader.snapshot import folder as store
from ringleader.snapshot import undo
from ringleader.snapshot.manifest import manifest_text
from ringleader.snapshot.pieces import write_piece
from ringleader.snapshot.place import Folder


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(4000, difficulty="easy", seed=3)


@pytest.fixture(scope="module")
def fitted(market: Marketplace) -> rl.RingDetector:
    """A model of a quarter of them, with labels of one target."""
    labels = market.labels[market.labels["target"] == "abuse"]
    return rl.RingDetector(rank=3, epochs=1).fit(market.reviews[:1000], labels)


def killed(*args: Any) -> Any:
    raise KeyboardInterrupt


def test_a_save_that_is_killed_leaves_the_old_model(
    fitted: rl.RingDetector, market: Marketplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "m")
    before = rl.load(tmp_path / "m").scores("seller")
    newer = rl.load(tmp_path / "m").partial_fit(market.reviews[1000:1500])
    write = Folder.write

    def until_the_manifest(folder: Folder, name: str, writer: Any) -> Any:
        return killed() if name == store.MANIFEST else write(folder, name, writer)

    monkeypatch.setattr(Folder, "write", until_the_manifest)
    with pytest.raises(KeyboardInterrupt):
        newer.save(tmp_path / "m")
    pd.testing.assert_frame_equal(rl.load(tmp_path / "m").scores("seller"), before)
    monkeypatch.undo()
    newer.save(tmp_path / "m")
    assert rl.load(tmp_path / "m").tensor_.n_cells == newer.tensor_.n_cells


def test_other_files_in_a_model_folder_are_left_alone(fitted: rl.RingDetector, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    mine = tmp_path / "m" / "scores.parquet"
    fitted.scores("seller").to_parquet(mine)
    fitted.save(tmp_path / "m")
    assert mine.exists()


def test_a_folder_of_other_things_is_refused_and_kept(fitted: rl.RingDetector, tmp_path: Path) -> None:
    (tmp_path / "reviews.parquet").write_bytes(b"mine")
    with pytest.raises(ModelFileError, match="contains other files"):
        fitted.save(tmp_path)
    assert (tmp_path / "reviews.parquet").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "name",
    ["labels-2024.parquet", "covariates-7.parquet", "state-1.parquet", "vocabulary-0-1.parquet", "labels-1.parquet"],
)
def test_files_called_like_parts_are_not_taken_for_leftovers(
    name: str, fitted: rl.RingDetector, market: Marketplace, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(ModelFileError, match="contains other files"):
        fitted.save(tmp_path)
    with pytest.raises(ModelFileError, match="so it is not a model"):
        rl.RingDetector(rank=3, epochs=1).fit(market.reviews, checkpoint=tmp_path, resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"mine"}


def test_tables_called_like_parts_stay_in_the_folder_of_a_model(
    fitted: rl.RingDetector, market: Marketplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "m")
    foreign = {"labels-2024.parquet", "covariates-7.parquet", "state-1.parquet", f"a-{'9' * 240}.json"}
    for name in foreign:
        (tmp_path / "m" / name).write_bytes(b"mine")
    newer = rl.load(tmp_path / "m").partial_fit(market.reviews[1000:1500])
    with monkeypatch.context() as faulty:
        faulty.setattr(Folder, "sync", lambda folder: killed())
        with pytest.raises(KeyboardInterrupt):
            newer.save(tmp_path / "m", keep=0)
    newer.save(tmp_path / "m", keep=0)
    unnamed = {path.name for path in (tmp_path / "m").iterdir()} - store.file_names(store.load(tmp_path / "m").files)
    assert unnamed - {store.LOCK} == {*foreign, store.MANIFEST}


@pytest.mark.parametrize("failing", ["write", "remove"])
def test_what_a_first_save_leaves_counts_as_nothing_whenever_it_is_killed(
    failing: str, fitted: rl.RingDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every write, and in every removal of what a save that failed clears up behind itself."""
    call = getattr(Folder, failing)
    for n in range(1, 100):
        folder, calls = tmp_path / str(n), iter(range(1, 1000))

        def at_the_nth(place: Folder, name: str, *more: Any, n: int = n, calls: Any = calls) -> Any:
            return killed() if name != store.LOCK and next(calls) == n else call(place, name, *more)

        with monkeypatch.context() as faulty:
            faulty.setattr(Folder, failing, at_the_nth)
            if failing == "write":
                faulty.setattr(store, "_clear_up", lambda place: None)
            else:
                faulty.setattr(Folder, "sync", lambda place: killed())  # before the manifest
            with contextlib.suppress(KeyboardInterrupt):
                fitted.save(folder)
        if store.is_model(folder) or (n > 1 and not folder.exists()):
            break
        assert store.is_free(folder), sorted(path.name for path in folder.iterdir())
    assert n > 10


def test_what_a_killed_first_save_left_counts_as_nothing(market: Marketplace, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "tensor-1.safetensors").write_bytes(b"half")
    (folder / ".state-1.safetensors.partial").write_bytes(b"half")
    model = rl.RingDetector(rank=3, epochs=1).fit(market.reviews, checkpoint=folder, resume=True)
    assert model.resumed_from_ is None
    assert rl.load(folder).complete_


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m["meta"].pop("history"),
        lambda m: m["meta"]["config"].update(contrast=2),
        lambda m: m["meta"].update(heads=3),
        lambda m: m.update(version=True),
        lambda m: m.update(version=0),
        lambda m: m["files"].update({"vocabulary-0": m["files"]["vocabulary-1"]}),
        lambda m: m.pop("sha256"),
    ],
)
def test_an_edited_manifest_is_refused(edit: Any, fitted: rl.RingDetector, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    path = tmp_path / "m" / store.MANIFEST
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match="damaged"):
        rl.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"settings": {"sweeps": 7}}, "epochs="),
        ({"settings": {"learner": "sgd"}}, "learner="),
        ({"settings": [1]}, "mapping"),
        ({"settings": {"step": "a"}}, "step"),
        ({"threads": 0}, "threads"),
        ({"joint": "yes"}, "joint"),
        ({"prevalence": {"sellr": 0.1}}, "sellr"),
        ({"prevalence": 1.5}, "prevalence"),
        ({"patience": 2}, "heldout_reviews"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    parameters: dict[str, Any], message: str, market: Marketplace
) -> None:
    with pytest.raises(SettingsError, match=message):
        rl.RingDetector(**parameters).fit(market.reviews)


def test_patience_counts_on_after_a_resume(market: Marketplace, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"preset": "corrected", "rank": 3, "epochs": 30, "heldout_reviews": 0.2, "patience": 2}
    whole = rl.RingDetector(**settings).fit(market.reviews)

    def stop(info: Any) -> bool:
        return bool(info.sweep >= whole.state_.sweep - 1)

    folder = tmp_path / "m"

    class Halted(Exception):
        pass

    def halt(info: Any) -> None:
        if stop(info):
            raise Halted

    with pytest.raises(Halted):
        rl.RingDetector(**settings).fit(market.reviews, checkpoint=folder, callback=halt)
    again = rl.RingDetector(**settings).fit(market.reviews, checkpoint=folder, resume=True)
    assert again.state_.sweep == whole.state_.sweep
    assert np.array_equal(again.state_.factors, whole.state_.factors)


def test_an_unfinished_fit_is_not_updated(market: Marketplace, tmp_path: Path) -> None:
    class Halted(Exception):
        pass

    def halt(info: Any) -> None:
        if info.sweep == 2:
            raise Halted

    with pytest.raises(Halted):
        rl.RingDetector(rank=3, epochs=5).fit(market.reviews, checkpoint=tmp_path / "m", callback=halt)
    with pytest.raises(SettingsError, match="resume=True"):
        rl.load(tmp_path / "m").partial_fit(market.reviews[:50])


def test_a_new_target_leaves_the_heads_of_the_others(market: Marketplace) -> None:
    abuse = market.labels[market.labels["target"] == "abuse"]
    boost = market.labels[(market.labels["target"] == "boost") & (market.labels["mode"] == "seller")]
    model = rl.RingDetector(preset="corrected", rank=3, epochs=4).fit(market.reviews, abuse)
    before = model.scores("reviewer").set_index("entity")["probability"]
    model.partial_fit(None, boost)
    after = model.scores("reviewer", "abuse").set_index("entity")["probability"][before.index]
    assert after.std() > 0
    assert np.corrcoef(before, after)[0, 1] > 0.9


def test_a_label_that_was_held_out_is_trained_on_or_tested_on_but_not_both(market: Marketplace) -> None:
    model = rl.RingDetector(rank=3, epochs=1, holdout=0.3).fit(market.reviews, market.labels)
    assert model.heldout_ is not None
    told = model.heldout_.entries[0]
    row = {"mode": [told.mode], "entity": [told.entity], "label": [int(told.value > 0)], "target": [told.target]}
    model.partial_fit(None, pd.DataFrame(row))
    assert model.heldout_ is not None
    assert (told.mode, told.entity) not in {(e.mode, e.entity) for e in model.heldout_.entries}


def test_a_fitted_detector_can_be_copied(fitted: rl.RingDetector) -> None:
    for copied in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        pd.testing.assert_frame_equal(copied.scores("seller"), fitted.scores("seller"), check_exact=True)


def test_numpy_numbers_are_numbers(market: Marketplace, tmp_path: Path) -> None:
    model = rl.RingDetector(rank=np.int64(3), epochs=np.int64(1)).fit(market.reviews)
    model.save(tmp_path / "m")
    assert rl.load(tmp_path / "m").config_.rank == 3


def test_an_update_holds_the_same_reviews_out(market: Marketplace) -> None:
    model = rl.RingDetector(preset="corrected", rank=3, epochs=1, heldout_reviews=0.3).fit(market.reviews[:3000])

    def held() -> set[tuple[int, ...]]:
        chosen = model.tensor_.coordinates[model.problem_.heldout > 0]
        return set(map(tuple, chosen.tolist()))

    before, share = held(), len(held()) / model.tensor_.n_cells
    assert share == pytest.approx(0.3, abs=0.03)
    model.partial_fit(market.reviews[3000:])
    assert before <= held()


def test_a_fit_with_a_drawn_seed_can_be_resumed(market: Marketplace, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    first = rl.RingDetector(rank=3, epochs=1, random_state=None).fit(market.reviews, checkpoint=folder)
    again = rl.RingDetector(rank=3, epochs=1, random_state=None).fit(market.reviews, checkpoint=folder, resume=True)
    assert again.config_.seed == first.config_.seed
    assert again.resumed_from_ == 1


def test_numbers_too_large_to_square_are_refused_as_labels() -> None:
    table = pd.DataFrame({"mode": ["seller"], "entity": ["a"], "label": [1e300]})
    with pytest.raises(LabelError, match="another unit"):
        rl.read_labels(table, target_kind="real")


@pytest.mark.parametrize(
    "parameters", [{"holdout": None}, {"holdout": False}, {"holdout": 0}, {"contrast": True}, {"contrast": 0}]
)
def test_what_a_fit_takes_can_be_opened_again(parameters: dict[str, Any], market: Marketplace, tmp_path: Path) -> None:
    model = rl.RingDetector(rank=2, epochs=1, **parameters).fit(market.reviews[:500])
    model.save(tmp_path / "m")
    again = rl.load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.config_ == model.config_


def forge(folder: Path, name: str, part: str, change: Any) -> None:
    """Changes the meta of a manifest, or the arrays of a part, with the right checksums."""
    path = folder / name
    manifest = json.loads(path.read_text())
    if not part:
        change(manifest["meta"])
    else:
        arrays = store.load(folder, name).arrays(part)
        change(arrays)
        manifest["files"][part] = write_piece(Folder(folder), manifest["files"][part]["name"], arrays)
    path.write_bytes(manifest_text(manifest["meta"], manifest["files"])[1])


@pytest.mark.parametrize(
    ("part", "change", "why"),
    [
        ("", lambda meta: meta.update(sweep=-1), "it has no proper 'sweep'"),
        ("", lambda meta: meta.update(heads=9), "it has other heads than the labels ask for"),
        ("tensor", lambda arrays: arrays["coordinates"].fill(30_000), "the tensor has codes beyond"),
        ("state", lambda arrays: arrays["factors"].fill(np.nan), "factors of the state has numbers"),
        ("lockstep", lambda arrays: arrays["single_data"].fill(np.nan), "lockstep"),
    ],
)
def test_what_does_not_fit_a_model_names_it_and_its_manifest_first(
    part: str, change: Any, why: str, fitted: rl.RingDetector, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    forge(tmp_path / "m", store.MANIFEST, part, change)
    said = rf"^model .*/m \(manifest\.json\) is damaged or was not written by ringleader: .*{why}"
    with pytest.raises(ModelFileError, match=said):
        _ = rl.load(tmp_path / "m").snapshot_.signals.lockstep


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda arrays: arrays.update(factors=arrays["factors"][:5]), "factors of the state has a wrong shape"),
        (lambda arrays: arrays["factors"].fill(np.nan), "factors of the state has numbers"),
        (lambda arrays: arrays["starts"].fill(10**9), "the state is of other entities"),
        (lambda arrays: arrays["steps"].fill(-7), "counts its sweeps or steps below zero"),
        (lambda arrays: arrays.pop("shrinkage"), "the stored state lacks shrinkage"),
        (lambda arrays: arrays.update(sweep=np.zeros(0, np.int64)), "IndexError"),
    ],
)
def test_a_fit_is_not_resumed_with_a_forged_state(change: Any, why: str, market: Marketplace, tmp_path: Path) -> None:
    def halt(info: Any) -> None:
        raise KeyboardInterrupt

    detector = rl.RingDetector(rank=2, epochs=2)
    with pytest.raises(KeyboardInterrupt):
        detector.fit(market.reviews[:300], checkpoint=tmp_path / "m", callback=halt)
    forge(tmp_path / "m", store.MANIFEST, "state", change)
    said = rf"^model .*/m \(manifest\.json\) is damaged or was not written by ringleader: .*{why}"
    with pytest.raises(ModelFileError, match=said):
        detector.fit(market.reviews[:300], checkpoint=tmp_path / "m", resume=True)


def test_a_forged_generation_is_refused_by_its_own_name(
    fitted: rl.RingDetector, market: Marketplace, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    rl.load(tmp_path / "m").partial_fit(market.reviews[1000:1500]).save(tmp_path / "m")
    forge(tmp_path / "m", "generation-1.json", "", lambda meta: meta.update(sweep=-1))
    with pytest.raises(ModelFileError, match=r"^model .*/m \(generation-1\.json\) is damaged.*'sweep'"):
        undo(tmp_path / "m")


class WithOneMore(rl.RingDetector):
    """A detector of somebody else, with a parameter that no manifest knows."""

    def __init__(self, *, rank: int = 2, epochs: int = 1, colour: Any = None) -> None:
        super().__init__(rank=rank, epochs=epochs)
        self.colour = colour

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {**rl.RingDetector(rank=self.rank, epochs=self.epochs).get_params(), "colour": self.colour}


@pytest.mark.parametrize("colour", ["red", object()])
def test_what_could_not_be_opened_again_is_not_saved(colour: Any, market: Marketplace, tmp_path: Path) -> None:
    model = WithOneMore(colour=colour).fit(market.reviews[:500])
    said = r"cannot save the model to .*m: it has a parameter 'colour', which a detector does not have"
    with pytest.raises(ModelFileError, match=said):
        model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=said):
        WithOneMore(colour=colour).fit(market.reviews[:500], checkpoint=tmp_path / "m")
    assert not (tmp_path / "m").exists()
