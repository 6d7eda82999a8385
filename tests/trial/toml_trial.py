"""Changed experiment files: the answer is a study or one line."""

from __future__ import annotations

import random
import tempfile
import tomllib
import warnings
from importlib.resources import files
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.experiment.build import build
from holdfast.experiment.toml import load
from trial.tally import Tally

SHORT, LONG = 200, 5_000
_NAMES = ("paper-mnist-quick", "paper-text-quick")
_QUOTED = '"a\\nb"'
_VALUES = (
    *("true", "-1", "0", "1e400", "nan", "inf", "9" * 400, "9" * 5000, '"\\u0000"', '"a\\nb"', '"words"', '""', "[]"),
    *(
        "[[1]]",
        "{}",
        '{ use = "grad" }',
        '{ use = "judge" }',
        "1979-05-27",
        "[" * 2000 + "]" * 2000,
        '"🦀"',
        "0.5",
        "3",
    ),
)


def _changed(text: str, rng: random.Random) -> str:
    """Return the text with one to three lines dropped, repeated, renamed, moved or given another value."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        key, equals, value = lines[at].partition(" = ")
        match rng.randrange(7):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, lines[rng.randrange(len(lines))])
            case 2:
                other = rng.choice(lines).partition(" = ")[0]
                lines[at] = rng.choice((other, key + "x", '"a\\nb"')) + equals + value
            case 3 | 4 if equals:
                lines[at] = f"{key} = {rng.choice(_VALUES)}"
            case 5 if equals:
                lines[at] = f"{key} = {rng.choice(lines).partition(' = ')[2]}"
            case _:
                place = rng.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + rng.choice("\"'[]{}=.#\x00\u2028é\r") + lines[at][place:]
    return "\n".join(lines)


def trial(count: int, seed: int) -> Tally:
    """Load changed files, and build those that can be loaded."""
    rng, tally = random.Random(seed), Tally(seed)
    folder = files("holdfast.experiment") / "named"
    texts = [(folder / f"{name}.toml").read_text(encoding="utf-8") for name in _NAMES]
    texts.append((Path(__file__).parents[1] / "small.toml").read_text(encoding="utf-8"))
    assert all(tomllib.loads(text) for text in texts)
    for number in range(count):
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(place) / "a.toml"
            path.write_text(_changed(rng.choice(texts), rng), encoding="utf-8")
            stage = "load"
            try:
                settings = load(str(path))
                stage = "build"
                build(settings, "a", Path(place), limit=1, train=False)
                tally.count("built")
            except HoldfastError as error:
                if len(str(error).splitlines()) == 1:
                    tally.count(f"refused by {stage}")
                else:
                    tally.fail(f"attempt {number}, {stage} says {str(error)!r}")
            except Exception as error:
                tally.fail(f"attempt {number}, {stage} raises {type(error).__name__}: {error}")
    return tally
