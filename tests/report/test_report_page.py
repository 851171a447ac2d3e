"""The page of every kind of model: complete, readable, closed to the outside, the same each time."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from kinds_of_model import KINDS, rated
from page_checks import contrast, faults, parse
from ring_market import detector, ring_labels, ring_table

import ringleader as rl
from ringleader import report
from ringleader.cli import explain
from ringleader.plot.colours import DARK, LIGHT
from ringleader.plot.score_data import scores
from ringleader.report import since
from ringleader.report.build import build
from ringleader.report.context import Context, Table
from ringleader.report.render import PAGE, render
from ringleader.report.shrink import shrink

Model = rl.RingDetector


@pytest.fixture(scope="module")
def context(model: Model) -> Context:
    return build(model)


@pytest.fixture(scope="module")
def page(context: Context) -> str:
    return render(context)


def test_the_page_says_who_why_and_how_good(context: Context, page: str) -> None:
    text = parse(page).all("main")[0].text
    for who in ("Sellers", "Reviewers", "Products"):
        assert f"{who} to look at first" in text
    for heading in (
        "Summary",
        "Groups that act together",
        "Core 1",
        "How good it is",
        "The model",
        "The data",
        "Settings",
    ):
        assert heading in text, heading
    first = context.rankings[0]
    assert [first.mode, first.column, first.rows[0].rank] == ["seller", "probability", 1]
    assert first.rows[0].name.startswith("rings")
    assert first.rows[0].cores == (1,)
    assert first.rows[0].reasons and first.rows[0].interval
    assert "AUC" in text and "average precision" in text
    assert "--holdout 0.4" in text and "--seed 0" in text and rl.__version__ in text


def test_every_chart_has_a_title_a_summary_and_its_numbers(context: Context, page: str) -> None:
    root = parse(page)
    figures = root.all("figure")
    names = {
        "core1",
        "time1",
        "rating1",
        "scores0",
        "scores1",
        "scores2",
        "curve0-0",
        "curve0-1",
        "training",
        "components",
    }
    assert names <= set(context.charts())
    assert len(figures) == len(context.charts())
    for figure in figures:
        assert len(figure.all("figcaption")[0].text) > 20
        assert len(figure.all("p")[0].text) > 30
        assert figure.all("details")[0].all("td")
        assert figure.all("svg")[0].all("path")


def test_names_lead_to_account_pages_with_reviews_and_reasons(context: Context, page: str) -> None:
    root = parse(page)
    pages = {e.attributes["id"]: e for e in root.all("section") if e.attributes.get("class") == "account"}
    assert len(pages) == len(context.accounts) > 20
    assert f"{len(pages)} accounts have a page of their own" in root.text
    first = context.rankings[0].rows[0]
    assert first.key in pages
    text = pages[first.key].text
    for words in (first.name, "What speaks for it", "What speaks against it", "Whom it acts with", "weigh most"):
        assert words in text
    described = context.accounts[int(first.key.removeprefix("account")) - 1]
    assert described.reviews.rows and any(row[-1] == "most" for row in described.reviews.rows)
    linked = {a.attributes["href"][1:] for a in root.all("a")}
    assert set(pages) <= linked  # each can be reached
    in_cores = {
        a.attributes["href"][1:] for d in root.all("details") for table in d.all("table") for a in table.all("a")
    }
    assert in_cores & set(pages)


def test_tables_can_be_saved_from_the_page(context: Context, page: str) -> None:
    links = [a for a in parse(page).all("a") if "download" in a.attributes]
    assert len(links) >= len(context.rankings) + len(context.accounts)
    text = unquote(links[0].attributes["href"].split(",", 1)[1])
    table = pd.read_csv(io.StringIO(text))
    assert list(table["entity"][:3]) == [row.name for row in context.rankings[0].rows[:3]]


def test_all_reviews_of_an_account_can_be_saved_from_its_page(
    context: Context, page: str, model: rl.RingDetector
) -> None:
    links = {a.attributes["download"]: a for a in parse(page).all("a") if "download" in a.attributes}
    for one in context.accounts:
        link = links[f"{one.key}.csv"]
        table = pd.read_csv(io.StringIO(unquote(link.attributes["href"].split(",", 1)[1])))
        assert len(table) == len(one.reviews.rows) + one.reviews.left_out == len(one.all_reviews.rows)
        assert link.text == f"Save all {len(table):,} {'review' if len(table) == 1 else 'reviews'} as CSV"
        assert (table["weighs"] == "most").sum() == sum(row[-1] == "most" for row in one.reviews.rows)


def test_names_stay_at_the_left_also_where_they_are_numbers() -> None:
    numbered = ring_table().assign(reviewer=lambda t: t["reviewer"].astype("category").cat.codes)
    page = report.page(detector().fit(rl.read_reviews(numbered)))
    table = next(t for t in parse(page).all("table") if t.all("caption")[0].text.startswith("Reviews of "))
    at = [e.text for e in table.all("th")].index("reviewer")
    assert "n" not in table.all("th")[at].attributes.get("class", "")
    rows = [row.all("td") for row in table.all("tr")[1:]]
    assert rows and all(row[at].text.isdigit() and row[at].attributes["class"] == "w" for row in rows)


def test_a_label_of_a_further_target_names_it_and_its_figures_are_in_one_table() -> None:
    first = ring_labels().assign(target="abuse")
    other = first.assign(target="attack", label=[i % 2 for i in range(len(first))])
    model = detector(holdout=0.4).fit(rl.read_reviews(ring_table()), rl.read_labels(pd.concat([first, other])))
    context = build(model)
    tags = {row.label: row.tone for section in context.rankings for row in section.rows if section.main}
    assert set(tags.items()) <= {("known bad", "bad"), ("known good", "good"), ("", "")}
    further = {row.label: row.tone for section in context.rankings for row in section.rows if not section.main}
    assert further and set(further.items()) <= {("known: attack", "bad"), ("known: no attack", ""), ("", "")}
    assert {row[1] for row in context.heldout_others.rows} == {"attack"}
    assert [held.heading for held in context.heldout] == ["Held-out sellers: abuse", "Held-out reviewers: abuse"]
    assert all(row[-1] == "too few to rely on" for row in context.heldout_others.rows)
    assert "Other targets" in parse(render(context)).text


def test_the_members_of_a_core_are_all_named_with_what_is_believed_and_known_of_them(context: Context) -> None:
    core = context.cores[0]
    for members in core.members:
        assert members.table.left_out == 0
        assert members.table.header[-2:] in (("probability", "label"), ("score", "label"))
    assert "are known bad" in core.verdict and "the model doubts" in core.verdict


def test_a_core_is_linked_from_the_table_of_cores_and_its_verdict_stands_there(context: Context, page: str) -> None:
    table = next(t for t in parse(page).all("table") if t.all("caption")[0].text == "All cores")
    assert [a.attributes["href"] for a in table.all("a") if a.text == "1"] == ["#core1"]
    assert [e.text for e in table.all("th")][len(context.cores_table.header) - 1] == "verdict"
    assert context.cores_table.rows[0][-1] in ("ring", "honest group?")
    inside = next(d for d in parse(page).all("details") if d.attributes.get("class") == "core")
    assert any(e.attributes.get("id") == "core1" for e in inside.all("p")), "a browser opens what holds the target"


def test_dates_in_sentences_are_not_broken_into_lines(page: str) -> None:
    dates = [e.text for e in parse(page).all("time")]
    assert len(dates) > 20 and all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates)


def test_as_many_account_pages_stay_as_fit(model: Model, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = page.count('<section class="account"')
    monkeypatch.setattr(report, "LARGEST", len(page.encode()) - 20_000)
    smaller = report.page(model)
    left = smaller.count('<section class="account"')
    assert 0 < left < pages and f"leaves out: {pages - left} account page" in smaller
    room = report.LARGEST - len(smaller.encode())
    largest = max(len(part.encode()) for part in page.split('<section class="account"')[1:-1])
    assert 0 <= room < largest + 1_000, "one more would not fit"
    assert faults(smaller) == []


def test_every_section_is_in_the_navigation_and_every_word_is_explained(page: str) -> None:
    root = parse(page)
    linked = {a.attributes["href"][1:] for a in root.all("nav")[0].all("a")}
    sections = {e.attributes["id"] for e in root.all("main")[0].children if e.tag == "section"}
    assert sections <= linked
    explained = [e.all("dt")[0] for e in root.all("div") if e.attributes.get("id", "").startswith("word-")]
    words = ("evidence", "lockstep", "core", "density", "expected", "log10_p", "calibration", "effective rank")
    assert set(words) <= {e.text for e in explained}


def test_a_report_since_another_says_who_rose_and_which_groups_are_new() -> None:
    table = ring_table()
    ring = table["reviewer"].str.startswith("ring")
    before = detector().fit(rl.read_reviews(table[~ring]), ring_labels()[8:])
    after = detector().fit(rl.read_reviews(table), ring_labels()[8:])
    context = build(after, before)
    assert context.since is not None
    found = dict(context.since.parts)
    assert "New groups" in found and found["New groups"][0].name == "Core 1"
    assert any(change.name.startswith("rings") for change in found["Sellers that rose"])
    assert all(change.text for changes in found.values() for change in changes)
    text = report.page(after, before)
    assert faults(text) == [] and "Since last time" in text
    same = build(after, after).since
    assert same is not None and same.parts == () and "Nobody moved" in same.lead


def test_the_core_is_a_block_of_the_matrix(context: Context) -> None:
    block = context.cores[0].matrix
    assert block is not None
    core = [(row, column) for row, column, _ in block.cells if row < block.core_rows and column < block.core_columns]
    inside = len(core) / (block.core_rows * block.core_columns)
    outside = (len(block.cells) - len(core)) / (
        len(block.row_names) * len(block.column_names) - block.core_rows * block.core_columns
    )
    assert inside > 0.7 > 3 * outside
    assert set(block.row_names[: block.core_rows]) == {f"rings{j}" for j in range(6)}
    assert {level for row, column, level in block.cells if (row, column) in core} == {4}


def test_the_timeline_and_the_ratings_compare_the_core_with_the_market(context: Context) -> None:
    core = context.cores[0]
    assert core.timeline is not None and core.ratings is not None
    for shares in (core.timeline.core, core.timeline.market, core.ratings.core, core.ratings.market):
        assert sum(shares) == pytest.approx(1.0)
    assert len(core.timeline.starts) == len(core.timeline.core) + 1
    assert core.ratings.core[-1] == 1.0 > core.ratings.market[-1]


def test_held_out_labels_give_curves_that_end_where_they_must(context: Context) -> None:
    recall, roc = context.heldout[0].curves
    assert recall.x[-1] == pytest.approx(1.0)
    assert (roc.x[0], roc.y[0], roc.x[-1], roc.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert all(a <= b for a, b in zip(roc.x, roc.x[1:], strict=False))


def test_a_figure_on_a_few_held_out_accounts_is_no_headline(context: Context, page: str) -> None:
    few = context.heldout[0]
    assert few.facts[0].name.startswith("AUC") and not few.enough and "Too few to rely on" in few.note
    assert few.facts[0] not in context.facts and "Too few to rely on" in page


def test_many_held_out_accounts_of_both_kinds_make_a_headline() -> None:
    ring = [("reviewer", f"ring{i}", 1) for i in range(14)] + [("reviewer", f"r{i}", 0) for i in range(60)]
    known = pd.DataFrame(ring, columns=["mode", "entity", "label"])
    context = build(detector(holdout=0.8).fit(rated(lambda t: t), rl.read_labels(known)))
    assert context.heldout[0].enough and "Too few" not in context.heldout[0].note
    assert context.heldout[0].facts[0] in context.facts


def test_rankings_beyond_the_most_are_counted_and_their_accounts_have_no_page(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.report.build.MANY_SUBJECTS", 1)
    context = build(model)
    assert [section.mode for section in context.rankings] == ["seller"]
    assert {one.mode for one in context.accounts} == {"seller"} and render(context)
    assert context.quality[-1] == "2 further rankings left out of this page; ringleader score has them."


def test_a_ranking_that_is_nearly_another_is_not_counted_as_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.report.build.MANY_SUBJECTS", 3)
    context = build(KINDS["several targets"][0]())
    assert len(context.rankings) == 3 and not any("left out of this page" in line for line in context.quality)


def test_labels_that_are_numbers_are_never_said_as_bad_or_good(capsys: pytest.CaptureFixture[str]) -> None:
    known = rl.read_labels(ring_labels().assign(target="risk"), target_kind="real")  # 0 and 1, and yet numbers
    model = detector().fit(rl.read_reviews(ring_table()), known)
    text = parse(report.page(model)).all("main")[0].text
    assert "Its label of risk is known: 1; without it the model would say" in text
    assert "known 1" in text
    assert not re.search(r"is known: (bad|good)|known (bad|good)", text)
    account = SimpleNamespace(label_kind="real", reasons_for=(), reasons_against=())
    row = {"reviews": 1, "reviews_old": 1, "label": -0.5, "label_old": np.nan}
    assert since._why(account, row, rose=True) == "labelled -0.5 since"  # type: ignore[arg-type]
    explain._show(model.explain("reviewer", "ring0"))
    said = capsys.readouterr().out
    assert "known 1" in said and not re.search("known (bad|good)", said)


def test_one_is_told_as_one(context: Context) -> None:
    assert context.cores_total == 1 and any(f.startswith("The only group has 1") for f in context.findings)
    frame = pd.DataFrame({"probability": [0.9, 0.2, 0.1], "label": np.nan})
    assert scores(frame, "seller", "abuse").title == "1 of 3 sellers has a probability of abuse above 50%"
    assert scores(frame[1:], "seller", "abuse").title == "0 of 2 sellers have a probability of abuse above 50%"


def test_the_page_can_be_read_by_all(page: str) -> None:
    assert faults(page) == []


@pytest.mark.parametrize("colours", [{**LIGHT, "page": PAGE["light"]}, {**DARK, "page": PAGE["dark"]}])
def test_text_and_charts_stand_out_in_light_and_dark(colours: dict[str, str]) -> None:
    for ground in (colours["paper"], colours["page"]):
        for role in ("ink", "muted", "core", "bad", "good"):  # as text: 4.5 to 1 (WCAG 2 AA)
            assert contrast(colours[role], ground) >= 4.5, role
    for role in ("market", *(f"rating{i}" for i in range(1, 6))):  # as shapes: 3 to 1
        assert contrast(colours[role], colours["paper"]) >= 3.0, role


def test_the_check_of_the_page_finds_faults(page: str) -> None:
    broken = {
        'lang="en"': "",
        'scope="col"': "",
        "<h1>": "<h1></h1><h1>",
        "<footer><p>": "<footer><h5>a</h5><p>",
        'aria-labelledby="core1-title"': "",
        '<main id="main">': '<main id="main"><p onclick="x">a</p>',
        "<footer>": '<footer><img src="https://example.com/a.png">',
    }
    for old, new in broken.items():
        assert old in page
        assert faults(page.replace(old, new)), old


def test_nothing_but_the_styles_of_the_page_may_load(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert policy is not None and style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1].replace("&#39;", "'").startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy[1]
    assert "http" not in page.replace("http-equiv", "")
    assert "url(" not in style[1] and "@import" not in style[1]


def test_the_same_model_gives_the_same_bytes(model: Model, page: str, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert report.page(rl.load(tmp_path / "model")) == page


def test_charts_do_not_follow_the_users_style(context: Context, page: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert render(context) == page
        assert mpl.rcParams["font.size"] == 30


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_its_page(kind: str) -> None:
    make, says = KINDS[kind]
    text = report.page(make())
    assert faults(text) == []
    assert says in parse(text).all("main")[0].text
    assert len(text.encode()) < report.LARGEST


def test_an_unfinished_fit_says_so(tmp_path: Path) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        detector().fit(rated(lambda t: t), ring_labels(), callback=stop, checkpoint=tmp_path / "model")
    text = report.page(rl.load(tmp_path / "model"))
    assert "Unfinished." in text and "--resume" in text
    assert faults(text) == []


def test_a_page_never_grows_beyond_its_limit(context: Context, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = dataclasses.replace(context.cores[0], matrix=None, timeline=None, ratings=None)
    many = tuple(dataclasses.replace(bare, number=i, members=bare.members * 9) for i in range(1, 13))
    large = dataclasses.replace(context, cores=many, cores_total=500, rankings=(), heldout=())
    monkeypatch.setattr(report.build, "build", lambda *_: large)
    monkeypatch.setattr(report, "LARGEST", 90_000)
    assert len(render(large).encode()) > 150_000
    text = report.page(model)
    assert len(text.encode()) <= 90_000
    assert faults(text) == []
    assert "500 cores found" in parse(text).text and "have a section of their own" in parse(text).text


def test_what_is_left_out_is_counted() -> None:
    table = Table(("a",), tuple((str(i),) for i in range(40)), 7)
    blank = Context(
        "", "", "", (), (), (), table, (), 0, (), "", table, None, None, (), table, table, table, "", (), ""
    )
    assert (len(shrink(blank).cores_table.rows), shrink(blank).cores_table.left_out) == (20, 27)
