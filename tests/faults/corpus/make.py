"""Writes the corpus: small files of every kind that readers take, and those that attacks found something with.

A finding of the fuzzer is added by hand as ``found-...``, so that it is tried first ever after.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
ROWS = [("r1", "p1", "s1", 5, 1500000000), ("r2", "p1", "s1", 4, 1500600000), ("r3", "p2", "s2", 1, 1501200000)]
NAMES = ("reviewer", "product", "seller", "rating", "timestamp")


def main() -> None:
    lines = [",".join(map(str, row)) for row in ROWS]
    plain = "\n".join([",".join(NAMES), *lines, ""])
    objects = "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS)
    texts = {
        "reviews-plain.csv": plain,
        "reviews-quoted.csv": plain.replace("p1", '"p ""1"", x\n y"'),
        "reviews-semicolon.csv": plain.replace(",", ";"),
        "reviews-tabs.tsv": plain.replace(",", "\t"),
        "reviews-marked.csv": "\ufeff" + plain,
        "reviews-objects.jsonl": objects,
        "reviews-dates.csv": plain.replace("1500000000", "2017-07-14").replace("1500600000", "2017-07-21T01:02:03Z"),
        "reviews-found-open-quote.csv": plain + '"x' + "a\n" * 40,
        "reviews-found-huge-rating.csv": plain + "r9,p9,s9,1e155,1500000000\n",
        "reviews-found-separator.csv": plain.replace("seller", "sel\u2028ler"),
        "reviews-found-mark-and-bad-line.jsonl": "\ufeff" + objects + "no object\n",
        "labels-plain.csv": "mode,entity,label,target\nseller,s1,1,abuse\nseller,s2,0,abuse\nreviewer,r1,1,boost\n",
        "labels-objects.jsonl": '{"mode":"seller","entity":"s1","label":1}\n',
        "labels-found-surrogate.jsonl": '{"mode":"seller","entity":["\\ud800"],"label":1}\n',
        "covariates-plain.csv": "mode,entity,age,paid\nseller,s1,3,true\nseller,s2,,false\n",
        "covariates-found-twice.csv": "mode,entity,x,x\nseller,s1,1,2\n",
        "covariates-found-surrogate.jsonl": '{"mode":"seller","entity":"s1","\\ud800":3}\n',
        "manifest-found-nested.json": "[[[[",
        "manifest-found-number.json": '{"format": "ringleader-model", "version": 1e999, "meta": {}, "files": {}}',
        "manifest-found-not-a-number.json": '{"format": "ringleader-model", "version": 3, "meta": {"x": NaN}}',
    }
    for name, text in texts.items():
        (HERE / name).write_bytes(text.encode())
    with gzip.GzipFile(HERE / "reviews-packed.csv.gz", "wb", mtime=0) as out:
        out.write(plain.encode())
    table = pa.table({name: [row[k] for row in ROWS] for k, name in enumerate(NAMES)})
    pq.write_table(table, HERE / "reviews-plain.parquet")
    pq.write_table(
        table.append_column("extra", pa.array([2**62] * 3, pa.timestamp("us"))), HERE / "reviews-time.parquet"
    )
    odd = {"mode": ["seller"], "entity": pa.array([2**62], pa.timestamp("us")), "label": [1]}
    pq.write_table(pa.table(odd), HERE / "labels-found-time.parquet")
    sheets = {"reviews": pd.DataFrame(ROWS, columns=list(NAMES))}
    sheets["labels"] = pd.DataFrame({"mode": ["seller"] * 2, "entity": ["s1", "s2"], "label": [1, 0]})
    sheets["covariates"] = sheets["labels"].rename(columns={"label": "age"})
    for kind, sheet in sheets.items():
        for suffix, engine in ((".xlsx", "openpyxl"), (".ods", "odf")):
            sheet.to_excel(HERE / f"{kind}-sheet{suffix}", index=False, engine=engine)
    far = b'<c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row></sheetData>'
    rezipped("reviews-sheet.xlsx", "reviews-found-far-cell.xlsx", b"</row></sheetData>", far)
    repeated = b'<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
    repeated += b'table:number-columns-repeated="16384"'
    rezipped("reviews-sheet.ods", "reviews-found-repeated.ods", b"<table:table-row><table:table-cell", repeated)
    spaces = b'<text:p><text:s text:c="999999999"/>'
    rezipped("reviews-sheet.ods", "reviews-found-spaces.ods", b"<text:p>", spaces)
    with pa.CompressedOutputStream(str(HERE / "reviews-packed.jsonl.zst"), "zstd") as out:
        out.write(objects.encode())


def rezipped(source: str, target: str, old: bytes, new: bytes) -> None:
    """A spreadsheet with one text of its parts replaced once."""
    replaced = 0
    with zipfile.ZipFile(HERE / source) as packed, zipfile.ZipFile(HERE / target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in packed.namelist():
            content = packed.read(name)
            replaced += old in content
            out.writestr(zipfile.ZipInfo(name), content.replace(old, new, 1), zipfile.ZIP_DEFLATED)
    assert replaced, f"{old!r} is not in {source}"


if __name__ == "__main__":
    main()
