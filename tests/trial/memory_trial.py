"""Small files that grow when they are read: each takes at most 1 GB of memory in all, or is refused in one sentence.

The files are read one after another in a process of their own, which prints its largest memory while it read each.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
from PIL import Image
from pyarrow import parquet

from holdfast.analyses.agreement import Marks
from holdfast.data.digits import load_weights
from holdfast.data.idx import read_idx
from holdfast.data.networks import mnist_cnn
from holdfast.data.photographs import read_photo
from holdfast.data.rationales import movie_passages, movie_reviews
from holdfast.data.texts import labelled, newsgroups, yahoo_answers
from holdfast.data.topics import load_bilstm
from holdfast.data.zoo import _tensors
from holdfast.errors import HoldfastError
from holdfast.experiment import Store, Unit
from holdfast.experiment.export import export
from holdfast.experiment.results import Results
from holdfast.experiment.toml import load
from holdfast.modalities.pixels import grey_image
from holdfast.text.words import Vocabulary
from trial.tally import Tally

SHORT, LONG = 10, 290
_MOST = 2**30  # bytes of memory
_STOP = 12 * 2**30  # bytes of address space, so that a failure does not bring the machine down
_FILE = 10 * 2**20  # bytes of a file
_SIDE = 7_990  # pixels a side of the largest picture that is read


def _read_store(path: Path) -> None:
    with Store.read(path) as store:
        for unit in store.units():
            assert unit.arrays
    export(Results(path), path.with_suffix(".csv"))


READERS: dict[str, Callable[[Path], object]] = {
    "idx.gz": read_idx,
    "photo": lambda path: read_photo(path, 224),
    "grey": lambda path: grey_image(path, (28, 28), True),
    "movies": movie_passages,
    "reviews": lambda path: movie_reviews(path, "train"),
    "news": lambda path: newsgroups(path, groups=("sci.space",)),
    "csv": labelled,
    "yahoo": lambda path: yahoo_answers(path, split="test"),
    "words": Vocabulary.read,
    "marks": Marks.read,
    "toml": lambda path: load(str(path)),
    "cnn": lambda path: load_weights(mnist_cnn(), path),
    "bilstm": load_bilstm,
    "pth": _tensors,
    "db": _read_store,
}


def _files(draw: random.Random) -> Iterator[tuple[str, str, Callable[[Path], None]]]:
    """Yield reader, ending of the name and writer of every kind of file."""
    huge = draw.randint(1_100, 2_000)  # megabytes when it is read
    yield "idx.gz", "idx.gz", lambda path: _gzip(path, b"\0\0\x08\x03" + (huge * 2**20).to_bytes(4, "big"), huge)
    yield "idx.gz", "idx.gz", lambda path: _gzip(path, b"\0\0\x08\x01\x07\x80\0\0", 120)
    for mode in ("RGBA", "I;16", "L", "P", "CMYK", "LA"):
        kind = "tiff" if mode == "CMYK" else "png"
        reader = draw.choice(["photo", "photo", "grey"])
        yield reader, kind, partial(_picture, mode=mode, kind=kind)
    yield "photo", "jpeg", lambda path: _picture(path, "RGB", "jpeg")
    yield "photo", "webp", lambda path: _picture(path, "RGB", "webp")
    yield "photo", "gif", lambda path: _frames(path, draw.randint(2, 40))
    token = draw.choice(["a ", "ab ", "abcdef ", "a\n", "x. "])
    marked = json.dumps({"annotation_id": "0", "classification": "NEG", "evidences": [[_span(0, 10**9)]]}).encode()
    movies = {"val.jsonl": marked, "train.jsonl": marked}
    yield "movies", "zip", lambda path: _zip(path, movies, "docs/{}", token, draw.randint(1, 15), draw.randint(1, 14))
    reviews = b"\n".join(marked.replace(b'"0"', f'"{number}"'.encode()) for number in range(14))
    split = {"train.jsonl": reviews, "val.jsonl": marked}
    yield "reviews", "zip", lambda path: _zip(path, split, "docs/{}", token, 14, 8)
    again = {"train.jsonl": (marked.replace(b'"0"', b'"1"') + b"\n") * 200, "val.jsonl": marked}
    yield "reviews", "zip", lambda path: _zip(path, again, "docs/{}", token, 2, 8)
    yield "news", "zip", lambda path: _zip(path, {}, "20news-bydate-test/sci.space/{}", token, 1, huge)
    line = draw.choice(["\n", "a\n", "> a\n", "word word word\n"])
    yield "news", "zip", lambda path: _zip(path, {}, "20news-bydate-test/sci.space/{}", "\n\n" + line, 8, 14)
    yield "news", "tar.gz", lambda path: _tar(path, huge)
    yield "news", "zip", lambda path: _many(path, "20news-bydate-test/sci.space/{}", 60_000)
    yield (
        "csv",
        "csv",
        lambda path: _lines(path, "text,label\n", draw.choice(["a,1\n", ",1\n", "a,{}\n", '"a\nb",{}\n'])),
    )
    yield "yahoo", "parquet", lambda path: _parquet(path, draw.choice([200_000, 2_000_000, 20_000_000]))
    row = '{{"topic": 1, "question_title": "{}", "question_content": ""}}\n'
    yield "yahoo", "jsonl", lambda path: _lines(path, "", row)
    yield "words", "txt", lambda path: _lines(path, "", draw.choice(["{} 1\n", "{} 1 0 1\n"]))
    marks = '{{"example": "{}", "annotator": "x", "features": [1]}}\n'
    yield "marks", "jsonl", lambda path: _lines(path, "", marks)
    wide = {"example": "a", "annotator": "x", "features": list(range(10**6, 10**6 + _FILE // 10))}
    yield "marks", "jsonl", lambda path: _bytes(path, json.dumps(wide).encode())
    yield "toml", "toml", lambda path: _lines(path, "", draw.choice(["a{} = [[], [], [], []]\n", "[a.b{}]\n"]))
    yield "cnn", "safetensors", lambda path: _safetensors(path, draw.choice([10**9, 2 * 10**6]))
    yield "bilstm", "safetensors", lambda path: _safetensors(path, draw.choice([10**9, 2 * 10**6]))
    yield "pth", "pth", lambda path: _zip(path, {"a/data.pkl": b"\x80\x02}."}, "a/data/{}", "\0", 1, huge)
    yield "db", "db", lambda path: _store(path, draw.randint(20, 120), draw.randint(1, 30))


def trial(count: int, seed: int) -> Tally:
    """Read ``count`` small files that grow."""
    tally, draw = Tally(seed), random.Random(seed)
    while tally.total < count:
        with tempfile.TemporaryDirectory() as name:
            kinds = list(_files(draw))
            kinds = draw.sample(kinds, min(len(kinds), count - tally.total))
            lines = []
            for number, (reader, ending, write) in enumerate(kinds):
                file = f"{number}.{ending}"
                write(Path(name, file))
                size = Path(name, file).stat().st_size
                if size > _FILE:
                    tally.fail(f"{file}: has {size:,} bytes, so it is no small file")
                lines.append(f"{reader} {Path(name, file)}")
            for line in _read_by_another(lines):
                file, peak, outcome = json.loads(line)
                if peak > _MOST:
                    tally.fail(f"seed {seed}, {file}: {peak / 2**20:,.0f} MB ({outcome})")
                elif outcome in ("read", "refused"):
                    tally.count(outcome)
                else:
                    tally.fail(f"seed {seed}, {file}: {outcome}")
            if len(lines) != len(kinds):
                tally.fail("the reading process ended early")
    return tally


def _read_by_another(lines: list[str]) -> list[str]:
    """Return what the reading process prints."""
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "trial.memory_trial"]
    ended = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, env=environment)
    assert not ended.returncode, ended.stderr
    return ended.stdout.splitlines()


def _read_all() -> None:
    """Read the files that standard input names, and print what each took."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_STOP, _STOP))
    for line in sys.stdin.read().splitlines():
        reader, _, file = line.partition(" ")
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # begin a new largest memory
        outcome = "read"
        try:
            READERS[reader](Path(file))
        except HoldfastError as error:
            outcome = "refused" if str(error).isprintable() else f"says {error}"
        except Exception as error:
            outcome = f"raises {type(error).__name__}: {error}"
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
        print(json.dumps([f"{reader} {Path(file).name}", 1024 * int(status["VmHWM"].split()[0]), outcome]), flush=True)


# ---------------------------------------------------------------------- files


def _span(start: int, end: int) -> dict[str, int]:
    return {"start_token": start, "end_token": end}


def _bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content[:_FILE])


def _zeros(megabytes: int) -> Iterator[bytes]:
    yield from [bytes(2**20)] * megabytes


def _gzip(path: Path, header: bytes, megabytes: int) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(header)
        file.writelines(_zeros(megabytes))


def _picture(path: Path, mode: str, kind: str) -> None:
    settings = {"compression": "tiff_lzw"} if kind == "tiff" else {"compress_level": 1} if kind == "png" else {}
    Image.new(mode, (_SIDE, _SIDE)).save(path, kind, **settings)


def _frames(path: Path, count: int) -> None:
    first, *others = [Image.new("P", (2_000, 2_000), number) for number in range(count)]
    first.save(path, "gif", save_all=True, append_images=others)


def _zip(path: Path, members: dict[str, bytes], name: str, token: str, count: int, megabytes: int) -> None:
    """Write an archive with ``count`` large files of a repeated token."""
    part = (token * (2**20 // len(token) + 1)).encode()[: 2**20]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        for number in range(count):
            with archive.open(name.format(number), "w") as file:
                for _ in range(megabytes):
                    file.write(part)


def _many(path: Path, name: str, count: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number in range(count):
            archive.writestr(name.format(number), b"\n\na")


def _tar(path: Path, megabytes: int) -> None:
    with gzip.open(path, "wb", 1) as file:
        header = tarfile.TarInfo("20news-bydate-test/sci.space/1")
        header.size = megabytes * 2**20
        file.write(header.tobuf())
        file.writelines(_zeros(megabytes))


def _lines(path: Path, head: str, line: str) -> None:
    """Write as many lines as fit, with a number in each place of the line for one."""
    out = io.StringIO()
    out.write(head)
    number = 0
    while out.tell() < _FILE - 200:
        out.write(line.format(f"{number:x}"))
        number += 1
    path.write_text(out.getvalue(), encoding="utf-8")


def _parquet(path: Path, rows: int) -> None:
    title = pyarrow.array(np.zeros(rows, np.int8)).cast(pyarrow.string())
    table = pyarrow.table({"topic": np.zeros(rows, np.int64), "question_title": title, "question_content": title})
    parquet.write_table(table, path, compression="zstd")


def _safetensors(path: Path, numbers: int) -> None:
    head = {"vectors": {"dtype": "F32", "shape": [numbers // 100, 100], "data_offsets": [0, 4 * numbers]}}
    text = json.dumps({"__metadata__": {"words": "a", "classes": "[]"}, **head}).encode()
    _bytes(path, len(text).to_bytes(8, "little") + text + bytes(min(4 * numbers, _FILE - len(text) - 8)))


def _store(path: Path, megabytes: int, units: int) -> None:
    """Write a store of arrays of zeros, which take little in the file."""
    with Store.open(path) as store:
        for number in range(units):
            store.put(Unit("zeros", {"number": number}, {"a": np.zeros(megabytes * 2**17)}))
        noise = np.frombuffer(random.Random(0).randbytes(_FILE // 2), np.uint8).astype(np.int16)
        store.put(Unit("noise", {"size": len(zlib.compress(noise.tobytes()))}, {"a": noise}))


if __name__ == "__main__":
    _read_all()
