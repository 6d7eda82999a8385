"""Damaged files of every format that holdfast reads: the answer is a result or one line that names the file."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import lightgbm
import numpy as np
import skops.io
import xgboost
from PIL import Image
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from holdfast.analyses.agreement import Marks
from holdfast.columns import Columns
from holdfast.data.digits import load_weights
from holdfast.data.idx import read_idx
from holdfast.data.networks import mnist_cnn
from holdfast.data.photographs import read_photo
from holdfast.data.rationales import movie_passages
from holdfast.data.tabular import adult
from holdfast.data.texts import labelled, newsgroups
from holdfast.data.topics import load_bilstm
from holdfast.errors import HoldfastError
from holdfast.experiment.toml import load
from holdfast.modalities.pixels import grey_image
from holdfast.text.words import Vocabulary
from holdfast.tree_ensembles.files import read_trees
from speed import slowness
from trial.tally import Tally

SHORT, LONG = 300, 5_000
_SLOWEST = 20.0  # seconds on a quiet core
_NUMBERS = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"99999999999999999999", b"1e400", b"-1")
_DEEP = (b"[" * 100_000, b'{"a":' * 50_000, b"x = " + b"[" * 50_000, b"a." * 50_000 + b"a = 1")
Reader = Callable[[Path], object]


def _zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _picture(kind: str) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((28, 28), 40).save(out, kind)
    return out.getvalue()


def _trees() -> dict[str, tuple[bytes, Reader]]:
    """Return a small tree classifier of each library as a file."""
    x = np.arange(24.0).reshape(12, 2) % 7
    y = (x.sum(1) % 5 > 2).astype(int)
    boosted = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(x, y).get_booster()
    light = lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=1, num_threads=1, verbose=-1).fit(x, y).booster_
    tree, histogram = DecisionTreeClassifier().fit(x, y), HistGradientBoostingClassifier(max_iter=2).fit(x, y)
    split = {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}
    cat = {
        "model_info": {"params": {"loss_function": {"type": "Logloss"}}},
        "features_info": {"float_features": [{"flat_feature_index": 0, "feature_id": "a"}]},
        "oblivious_trees": [{"splits": [split], "leaf_values": [1.0, -1.0]}],
        "scale_and_bias": [1, [0.0]],
    }
    contents = {
        "xgboost.json": bytes(boosted.save_raw("json")),
        "xgboost.ubj": bytes(boosted.save_raw("ubj")),
        "lightgbm.txt": light.model_to_string().encode(),
        "catboost.json": json.dumps(cat).encode(),
        "tree.skops": skops.io.dumps(tree),
        "histogram.skops": skops.io.dumps(histogram),
        "pickled.json": pickle.dumps(tree),
        "pickled.ubj": pickle.dumps(tree),
    }
    return {name: (content, _scored) for name, content in contents.items()}


def _scored(path: Path) -> object:
    ensemble = read_trees(path)
    return ensemble.scores(np.linspace(-3, 3, 3 * ensemble.columns).reshape(3, -1))


def _samples() -> dict[str, tuple[bytes, Reader]]:
    """Return a small valid file of each format, by file name, and its reader."""
    idx = b"\x00\x00\x08\x03" + bytes([0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(2 * 784)
    span = {"start_token": 1, "end_token": 3}
    entry = {"annotation_id": "a.txt", "classification": "NEG", "evidences": [[span]]}
    movies = {"val.jsonl": json.dumps(entry).encode(), "docs/a.txt": b"the plot is thin .\nso it goes on ."}
    post = {"20news-bydate-test/sci.space/1": b"From: a\n\nthe orbit of the moon is high\n"}
    stored = files("holdfast.data") / "files"
    named = files("holdfast.experiment") / "named" / "paper-mnist-quick.toml"
    samples: dict[str, tuple[bytes, Reader]] = {
        "a.idx": (idx, read_idx),
        "a.idx.gz": (gzip.compress(idx), read_idx),
        "movies.zip": (_zip(movies), movie_passages),
        "news.zip": (_zip(post), lambda path: newsgroups(path, groups=("sci.space",))),
        "a.csv": (b"text,label\ngood film,1\nbad film,0\n", labelled),
        "people.csv": (b"age,job\n33,clerk\n41,nurse\n", lambda path: Columns.read_csv(path).read_rows(path)),
        "columns.json": ((stored / "adult-columns.json").read_bytes(), Columns.load),
        "adult.csv.gz": ((stored / "adult-2000.csv.gz").read_bytes(), adult),
        "vectors.txt": (b"cat 1.0 0.5\ndog 0.25 1.0\n", Vocabulary.read),
        "marks.jsonl": (b'{"example": "a", "annotator": "x", "features": [1, 2]}\n', Marks.read),
        "a.toml": (named.read_bytes(), lambda path: load(str(path))),
        "cnn.safetensors": (
            (stored / "mnist-cnn.safetensors").read_bytes(),
            lambda path: load_weights(mnist_cnn(), path),
        ),
        "text.safetensors": ((stored / "topics-bilstm.safetensors").read_bytes(), load_bilstm),
        "mask.png": (_picture("png"), lambda path: grey_image(path, (28, 28), True)),
    }
    samples |= _trees()
    for kind in ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm"):
        samples[f"photo.{kind}"] = (_picture(kind), lambda path: read_photo(path, 32))
    return samples


def _damaged(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return a file with one to three kinds of damage. Most of it is near the start, where headers are."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(data) + 1 if rng.random() < 0.5 else min(len(data), 300) + 1)
        match rng.randrange(9):
            case 0 | 1:
                if place < len(data):
                    data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place:]
            case 3:
                data[place:place] = rng.randbytes(rng.randint(1, 20))
            case 4 | 5:
                number = rng.choice(_NUMBERS)
                data[place : place + len(number)] = number
            case 6:
                data[place : place + rng.randint(1, 50)] = b""
            case 7:
                data = bytearray(rng.choice(others))
            case 8:
                data[place:place] = rng.choice((b"\xff\xfe\xc3", b"\x00", b"\r", *_DEEP))
    return bytes(data)


def _placed(folder: Path, name: str, content: bytes, rng: random.Random) -> Path:
    """Write the file, or return a path that holds none."""
    path = folder / name
    match rng.randrange(40):
        case 0:
            return folder / ("long" * 100 + name)
        case 1:
            return Path(f"{folder}/zero\0{name}")
        case 2:
            path.symlink_to(path)
        case 3:
            path.mkdir()
        case 4:
            path.write_bytes(b"")
        case _:
            path.write_bytes(content)
    return path


def trial(count: int, seed: int) -> Tally:
    """Read damaged files."""
    rng, tally, samples = random.Random(seed), Tally(seed), _samples()
    small = [content for content, _ in samples.values() if len(content) < 10_000]
    for number in range(count):
        name = rng.choice(list(samples))
        content, read = samples[name]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = _placed(Path(folder), name, _damaged(content, small, rng), rng)
            began = time.perf_counter()
            try:
                read(path)
                outcome = "read"
            except HoldfastError as error:
                said = str(error)
                outcome = "refused" if said.isprintable() and name in said else f"says {said!r}"
            except Exception as error:
                outcome = f"raises {type(error).__name__}: {error}"
            seconds = time.perf_counter() - began
        if seconds > _SLOWEST and seconds > _SLOWEST * slowness():
            outcome = f"takes {seconds:.0f} s"
        if outcome in ("read", "refused"):
            tally.count(outcome)
        else:
            tally.fail(f"attempt {number}, {name}: {outcome}")
    return tally
