"""The console under load: analysts who decide at once, what they wait for, and whether anything is lost.

python benchmarks/console_load.py MODEL [--analysts 20] [--rate 10] [--seconds 60] [--at-once]     or: --paging

Serves a copy of the model in a process of its own. Each analyst opens the next card of the queue, decides, and looks at
a list, an account or the overview now and then; together they decide so many times a second. As a page of the console
does, an analyst fetches the next card anew when a new ranking is told, every three seconds at most. Prints what
requests took, how soon a new ranking was served after a decision, and checks that every acknowledged decision is in the
log, in the order in which it was acknowledged.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from ringleader.console.decisions import DecisionStore
from ringleader.console.population import Filters, Population, Standing
from ringleader.cores import Cores
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

PAGES = ("/", "/sellers", "/reviewers?decided=no", "/cores", "/decisions", "/reviewers?q=R0")

FOLLOWED = 3.0
"""Seconds after which a page fetches its next card anew for a new ranking; console.js has the same."""
Ranking = tuple[float, int]
"""When a new ranking was told, and the last decision it knows."""


class Analyst(threading.Thread):
    """One person: a session, a connection, and a verdict every so many seconds."""

    def __init__(self, number: int, url: str, link: str, pause: float, end: float, runs: list[Ranking]) -> None:
        super().__init__(daemon=True)
        self.runs, self.followed = runs, 0.0
        self.number, self.url, self.pause, self.end = number, url, pause, end
        self.rng = random.Random(number)
        self.took: dict[str, list[float]] = defaultdict(list)
        self.saved: list[tuple[int, str]] = []
        self.at: list[tuple[int, float]] = []
        self.conflicts = self.faults = 0
        self.wait = self.rng.random() * pause
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self.cookie = ""
        _, headers, _ = self.ask("session", "GET", f"/?token={link}")
        self.cookie = headers["set-cookie"].partition(";")[0]

    def ask(self, kind: str, method: str, path: str, body: Any = None, **more: str) -> tuple[int, Any, bytes]:
        headers = {"Cookie": self.cookie, "Origin": self.url, **more}
        text = None
        if body is not None:
            text, headers["Content-Type"] = json.dumps(body), "application/json"
        started = time.perf_counter()
        self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        self.took[kind].append(time.perf_counter() - started)
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def run(self) -> None:
        time.sleep(self.wait)
        seen: list[str] = []
        while time.perf_counter() < self.end:
            begun = time.perf_counter()
            mode = "seller" if self.rng.random() < 0.5 else "reviewer"
            by = self.rng.choice(("top", "top", "uncertain", "diverse", "random"))
            path = f"/queue/card?mode={mode}&by={by}&not={','.join(seen[-50:])}"
            status, _, card = self.ask("card", "GET", path)
            if self.runs and self.runs[-1][0] > self.followed + FOLLOWED:
                self.followed = time.perf_counter()
                self.ask("card", "GET", path)
            found = re.search(rb'data-entity="(\w+)"[^>]*data-head="(\d+)" data-code="(\d+)"', card)
            if status != 200 or found is None:
                self.faults += 1
                continue
            entity, head, code = (part.decode() for part in found.groups())
            seen.append(code)
            self.decide(mode, entity, head)
            self.ask("page", "GET", self.rng.choice(PAGES))
            if self.rng.random() < 0.3:
                self.ask("account", "GET", f"/{mode}s/{entity}")
            time.sleep(max(self.pause - (time.perf_counter() - begun), 0.0))

    def decide(self, mode: str, entity: str, head: str) -> None:
        key = f"{self.number}-{len(self.saved)}-{self.rng.random()}"
        body = {"mode": mode, "entity": entity, "verdict": self.rng.choice(("bad", "good"))}
        more = {"Idempotency-Key": key, "If-Match": f'"{head}"'}
        status, _, answer = self.ask("decision", "POST", "/api/v1/decisions", body, **more)
        if status == 201:
            number = json.loads(answer)["id"]
            self.saved.append((number, key))
            self.at.append((number, time.perf_counter()))
        elif status == 409:
            self.conflicts += 1
        else:
            self.faults += 1


def follow(url: str, cookie: str, runs: list[Ranking], stop: threading.Event) -> None:
    """Notes when each new ranking was told, and up to which decision it knows."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    connection.request("GET", "/events", headers={"Cookie": cookie})
    stream = connection.getresponse()
    while not stop.is_set():
        line = stream.readline()
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            if event["kind"] == "run":
                runs.append((time.perf_counter(), event["until"]))


def ranked_at(runs: list[Ranking], number: int) -> float | None:
    """When the first ranking that knows a decision was told."""
    return next((when for when, until in runs if until >= number), None)


def percentiles(values: list[float]) -> str:
    p50, p95, p99 = np.percentile(values, [50, 95, 99]) * 1000
    return (
        f"{len(values):6,} requests  p50 {p50:7.1f}  p95 {p95:7.1f}  p99 {p99:7.1f}  most {1000 * max(values):7.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--analysts", type=int, default=20)
    parser.add_argument("--rate", type=float, default=10.0, help="decisions a second, of all together")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=5.0, help="seconds to wait for the last ranking")
    parser.add_argument("--at-once", action="store_true", help="the first decision as soon as the console answers")
    parser.add_argument("--paging", action="store_true", help="instead: a page among 1,000 and 1,000,000 accounts")
    options = parser.parse_args()
    if options.paging:
        paging()
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model"
        shutil.copytree(options.model, copy, ignore=shutil.ignore_patterns("decisions.sqlite*"))
        command = [sys.executable, "-c", "from ringleader.cli import main; main()", "serve", str(copy), "--port", "0"]
        with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = json.loads(server.stdout.readline())
                measure(address, options)
            finally:
                server.terminate()
        check(copy)


def paging() -> None:
    """What a page costs, by the number of accounts: the first, the one behind a cursor, a prefix, a filter."""
    for accounts in (1_000, 1_000_000):
        rng = np.random.default_rng(0)
        names = Vocabulary.of_ids("reviewer", [f"R{i:07d}" for i in rng.permutation(accounts)])
        coordinates = np.column_stack([np.arange(accounts), np.zeros(accounts)]).astype(np.int32)
        tensor = SparseTensor(coordinates, np.ones(accounts, np.int64), (names, Vocabulary.of_ids("seller", ["s"])))
        standing = Standing.__new__(Standing)
        standing.population = Population(tensor, 0)
        standing.score, standing.evidence = rng.random(accounts), rng.random(accounts)
        standing.label = np.where(rng.random(accounts) < 0.01, 1.0, np.nan)
        standing.rank_all()
        middle = standing.cursor(int(standing.order[accounts // 2]))
        pages = {
            "first page": (Filters(), None),
            "page in the middle": (Filters(), middle),
            "prefix of all": (Filters(q="R0"), middle),
            "prefix of few": (Filters(q="R00001"), None),
            "known bad": (Filters(label="bad"), None),
            "undecided": (Filters(decided="no"), None),
            "nobody passes": (Filters(least=2.0), None),
        }
        for name, (filters, after) in pages.items():
            took = []
            for _ in range(200):
                started = time.perf_counter()
                standing.page(filters, lambda codes: np.full(len(codes), "", "U6"), Cores(()), after, 50)
                took.append(time.perf_counter() - started)
            print(f"{accounts:9,} accounts  {name:18s} p50 {1e3 * np.median(took):6.2f} ms")


def measure(address: dict[str, str], options: argparse.Namespace) -> None:
    """The load itself. Every session but the first is opened by a link that the first one asks for."""
    url, pause = address["url"], options.analysts / options.rate
    runs: list[Ranking] = []
    first = Analyst(0, url, address["token"], pause, 0.0, runs)
    links = [link_of(first) for _ in range(options.analysts + 1)]
    for _ in range(0 if options.at_once else 3):  # what is described, drawn and compiled once
        for path in (*PAGES, "/queue/card?mode=seller", "/queue/card?mode=reviewer"):
            first.ask("warm", "GET", path)
    end = time.perf_counter() + options.seconds
    analysts = [Analyst(i + 1, url, link, pause, end, runs) for i, link in enumerate(links[1:])]
    if options.at_once:
        analysts[0].wait = 0.0
    stop = threading.Event()
    threading.Thread(target=follow, args=(url, first.cookie, runs, stop), daemon=True).start()
    for analyst in analysts:
        analyst.start()
    for analyst in analysts:
        analyst.join()
    time.sleep(options.settle)
    stop.set()
    took: dict[str, list[float]] = defaultdict(list)
    for analyst in analysts:
        for kind, values in analyst.took.items():
            took[kind] += values
    for kind in ("decision", "card", "page", "account"):
        if took[kind]:
            print(f"{kind:9s}{percentiles(took[kind])}")
    everything = [t for kind, values in took.items() if kind != "session" for t in values]
    print(f"{'all':9s}{percentiles(everything)}")
    saved = sum(len(a.saved) for a in analysts)
    conflicts, faults = (sum(getattr(a, name) for a in analysts) for name in ("conflicts", "faults"))
    print(f"{saved:,} decisions, {conflicts} conflicts, {faults} faults")
    waits = [when - at for a in analysts for number, at in a.at if (when := ranked_at(runs, number)) is not None]
    p50, p95 = np.percentile(waits, [50, 95])
    print(f"{len(runs)} rankings; a decision is in the ranking after p50 {p50:.2f} s, p95 {p95:.2f} s")
    if len(analysts) == 1:
        print("each after " + ", ".join(f"{wait:.2f}" for wait in waits) + " s")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    SAVED.extend(pair for analyst in analysts for pair in analyst.saved)
    for analyst in analysts:
        assert [i for i, _ in analyst.saved] == sorted(i for i, _ in analyst.saved), "order"


SAVED: list[tuple[int, str]] = []


def link_of(analyst: Analyst) -> str:
    _, _, page = analyst.ask("session", "POST", "/link", **{"Sec-Fetch-Site": "same-origin"})
    found = re.search(rb"token=([\w-]+)", page)
    assert found is not None
    return found[1].decode()


def check(folder: Path) -> None:
    """Every acknowledged decision is in the log under its number."""
    store = DecisionStore(folder)
    by_id = {event.id: event.key for event in store.events()}
    lost = [pair for pair in SAVED if by_id.get(pair[0]) != pair[1]]
    print(f"log: {store.last:,} decisions, {len(lost)} of {len(SAVED):,} acknowledged ones lost, {store.integrity()}")


if __name__ == "__main__":
    main()
