"""Every night: check the day's reviews, take them into the model, write who is suspicious and who has newly risen.

    python examples/nightly.py                         a market of 20,000 reviews, its last three days night by night
    python examples/nightly.py --reviews 200000 --nights 7

``night`` is what to copy: it needs a model folder, a file of new reviews, and a folder for the results. Run it
from any scheduler. A night that fails leaves the model of the night before as it was.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd

import ringleader as rl

DAY = 86_400
LARGEST_REFUSED = 0.02
"""Share of rows that may be unusable before the night is called off: more means that an export went wrong."""
ALARM = 0.5
"""An account has newly risen when its probability crosses this."""
MODE = "seller"


def night(model_folder: Path, new_reviews: Path, out: Path, labels: Path | None = None) -> dict[str, object]:
    """One night's work. Writes ``out/ranked.csv`` (everyone) and ``out/risen.csv`` (who crossed ALARM tonight)."""
    model = rl.load(model_folder)
    before = model.scores(MODE).set_index("entity")["probability"]

    # 1. Check, with the columns and the codes of the model, before anything is changed.
    fresh = rl.read_reviews(new_reviews, **model.reading_, vocabularies=model.tensor_.vocabularies)
    report = fresh.report
    refused = sum(report.rejected.values())
    if refused > LARGEST_REFUSED * report.rows:
        raise SystemExit(
            f"{refused:,} of {report.rows:,} rows cannot be used: {report.rejected}; the model was left alone"
        )

    # 2. Update: only what the new reviews and labels touch moves. Saving replaces the folder as a whole.
    model.partial_fit(fresh, rl.read_labels(labels) if labels else None)
    model.save(model_folder)

    # 3. Write what people read in the morning.
    ranked = model.scores(MODE)
    ranked["before"] = ranked["entity"].map(before)  # empty for accounts that are new tonight
    risen = ranked[(ranked["probability"] >= ALARM) & ~(ranked["before"] >= ALARM) & ranked["label"].isna()]
    out.mkdir(parents=True, exist_ok=True)
    ranked.to_csv(out / "ranked.csv", index=False)
    risen.to_csv(out / "risen.csv", index=False)
    return {"new": int(fresh.counts.sum()), "refused": refused, "risen": list(risen["entity"])}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=20_000, help="size of the generated market")
    parser.add_argument("--nights", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="where to keep the model and the results")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="nightly-"))

    # A market whose last days have not happened yet. Times are seconds.
    market = rl.datasets.marketplace(options.reviews, seed=options.seed)
    reviews = market.reviews
    midnight = (reviews["timestamp"].max() // DAY + 1) * DAY
    days_left = (midnight - 1 - reviews["timestamp"]) // DAY  # 0 on the last day
    past = reviews[days_left >= options.nights]
    rl.RingDetector(random_state=options.seed).fit(past, market.labels).save(folder / "model")
    print(f"a model of {len(past):,} reviews in {folder / 'model'}")

    for left in reversed(range(options.nights)):
        day = pd.to_datetime(midnight - (left + 1) * DAY, unit="s").date().isoformat()
        file = folder / f"reviews-{day}.csv"
        reviews[days_left == left].to_csv(file, index=False)
        done = night(folder / "model", file, folder / day)
        names = ", ".join(done["risen"]) or "nobody"
        print(f"{day}: {done['new']:,} new reviews, {done['refused']} refused; newly risen: {names}")
    print(f"the ranked lists are in {folder}")


if __name__ == "__main__":
    main()
