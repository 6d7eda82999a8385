"""Write the rows of Adult that the package contains, and what its columns are: python embed_adult.py ADULT.csv"""

from __future__ import annotations

import csv
import gzip
import io
import random
import sys
from pathlib import Path

import holdfast as hf
from holdfast.columns.csv_tables import parsed
from holdfast.data.tabular import ADULT_FILE, adult_texts
from holdfast.files import write_bytes

FOLDER = Path(hf.__file__).parent / "data" / "files"
ROWS, SEED = 2_000, 0
LEFT_OUT = ("fnlwgt", "education_num", "relationship", "native_country", "income")


def main(path: Path) -> None:
    """Choose rows by seed, keep their order, and write both files."""
    texts = adult_texts(path)
    names = [name for name in ADULT_FILE if name not in LEFT_OUT]
    # Most files write gains as 0.0, and they are whole dollars.
    held = {
        name: [str(int(float(one))) for one in texts[name]] if name.startswith("capital") else texts[name]
        for name in [*names, "income"]
    }
    by_number = dict(zip(texts["education_num"], texts["education"], strict=True))
    columns = hf.Columns.read(
        {name: parsed(held[name]) for name in names},
        kinds={"education": "ordered"},
        categories={"education": [by_number[number] for number in sorted(by_number, key=int)]},
        units={"age": "years", "hours_per_week": "hours", "capital_gain": "$", "capital_loss": "$"},
        fixed=["race", "sex"],
        rising=["age", "education"],
    )
    columns.save(FOLDER / "adult-columns.json")
    chosen = sorted(random.Random(SEED).sample(range(len(held["age"])), ROWS))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(held)
    writer.writerows([held[name][row] for name in held] for row in chosen)
    write_bytes(FOLDER / "adult-2000.csv.gz", gzip.compress(out.getvalue().encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
