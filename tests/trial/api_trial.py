"""A trial of the API: odd calls end in a result or in one ``HoldfastError`` of one sentence.

Python's own refusal of a call with unknown or missing arguments is not tried.
"""

from __future__ import annotations

import math
import random
import re
import signal
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from types import FrameType
from typing import Any

import torch

import holdfast as hf
from holdfast.analyses.analysis import Analysis
from holdfast.data.dataset import DataSet
from holdfast.data.network import Network
from holdfast.experiment.study import Gallery
from holdfast.explaining import explain_cases
from speed import slowness
from trial.api_doors import DOORS
from trial.api_tables import TABLES
from trial.api_values import CLASSES, INPUTS, good_cases, odd_model, odd_tensor, odd_value
from trial.tally import Tally

SHORT, LONG = 400, 20_000
_SECONDS = 20  # a call that takes longer on a quiet core hangs
_SMALL: dict[str, Any] = {
    "steps": 12,
    "samples": 20,
    "starts": 1,
    "rounds": 3,
    "most_rows": 200,
    "draws": 2,
    "classes": 2,
}


class _Hangs(BaseException):
    """A call took too long."""


def trial(count: int, seed: int) -> Tally:
    """Make odd calls.

    Args:
        count: How many.
        seed: The seed of all of them.

    Returns:
        The outcomes by the kind of call.
    """
    tally = Tally(seed)
    calls = list(CALLS)
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(count):
                name = calls[number % len(calls)]
                if number % 100 == 0:
                    seconds = math.ceil(_SECONDS * slowness())
                _attempt(tally, name, random.Random(f"{seed} {number}"), number, seconds)
    finally:
        signal.signal(signal.SIGALRM, before)
    return tally


def _attempt(tally: Tally, name: str, draw: random.Random, number: int, seconds: int) -> None:
    signal.alarm(seconds)
    try:
        result = CALLS[name](draw)
    except hf.HoldfastError as error:
        wrong = _wrong_sentence(str(error))
        if wrong:
            tally.fail(f"{name} {number}: {wrong}: {error}")
        else:
            tally.count("refused")
    except _Hangs:
        tally.fail(f"{name} {number}: hangs")
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/holdfast/" in frame.filename] or frames
        place = f"{ours[-1].filename.rsplit('/', 1)[-1]}:{ours[-1].lineno}"
        tally.fail(f"{name} {number}: {type(error).__name__} at {place}: {error}")
    else:
        if isinstance(result, torch.Tensor) and result.is_floating_point() and bool(result.isnan().any()):
            tally.fail(f"{name} {number}: NaN in the result")
        else:
            tally.count("result")
    finally:
        signal.alarm(0)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Hangs


def _wrong_sentence(text: str) -> str:
    """Return what is wrong with the message of an error; empty if nothing is."""
    if "\n" in text:
        return "more than one line"
    if not text.endswith((".", "?", ".)")):
        return "no full stop"
    return "an internal name" if re.search(r"(?<![\w'])_[a-z]\w+\(|\bself\.", text) else ""


# ---------------------------------------------------------------------- settings

_KINDS: list[Any] = [hf.Explainer, hf.Estimator, hf.Criterion, hf.Robustness, Analysis, DataSet, Network]


def _settings(draw: random.Random) -> Any:
    """Make any extension with one or two odd settings."""
    cls: Any = draw.choice([*draw.choice(_KINDS).registry.classes().values(), Gallery, hf.Execution])
    names = [field.name for field in fields(cls) if field.init]
    chosen = draw.sample(names, min(len(names), draw.choice([1, 1, 2])))
    made = cls(**{name: odd_value(draw) for name in chosen})
    assert repr(made)
    return made


def _short(draw: random.Random, kind: Any) -> Any:
    """Return an instance of a kind with short settings, some of them odd."""
    cls: Any = draw.choice(list(kind.registry.classes().values()))
    names = [field.name for field in fields(cls) if field.init]
    settings = {name: value for name, value in _SMALL.items() if name in names}
    if cls is hf.GreedyAS or cls is hf.OneStepBanzhaf:
        settings["samples"] = 3
    if "objective" in names:
        settings["objective"] = hf.RobustnessRest(hf.MinNorm(steps=4))
    if "robustness" in names:
        settings["robustness"] = draw.choice([hf.MinNorm(steps=4), hf.PGD(steps=3, rounds=3), hf.ExactLinear()])
    if "p" in names:
        settings["p"] = draw.choice([1, 2, torch.inf])
    if names and draw.random() < 0.3:
        with suppress(hf.HoldfastError):
            odd = {draw.choice(names): draw.choice([0, 1, 2, 3, 0.5, 1.0, True, "blur", "uniform", odd_tensor(draw)])}
            return cls(**settings | odd)
    return cls(**settings)


# ---------------------------------------------------------------------- calls


def _cases(draw: random.Random) -> Any:
    """Return cases, mostly of a model with a fault that shows later."""
    if draw.random() < 0.4:
        return good_cases(draw)
    cases: hf.Cases = odd_model(draw).ask(torch.rand(draw.choice([1, 2]), INPUTS))
    return cases


def _subsets(draw: random.Random, cases: hf.Cases) -> Any:
    good = (
        torch.rand(len(cases), 2, cases.features.count, generator=torch.Generator().manual_seed(draw.randrange(9)))
        > 0.5
    )
    return good if draw.random() < 0.7 else odd_tensor(draw)


def _ask(draw: random.Random) -> Any:
    x = odd_tensor(draw, (2, INPUTS)) if draw.random() < 0.7 else torch.rand(2, INPUTS)
    odd = {name: odd_value(draw) for name in ("label", "target", "features") if draw.random() < 0.3}
    return odd_model(draw).ask(x, **odd) if draw.random() < 0.5 else good_cases(draw).model.ask(x, **odd)


def _torch_model(draw: random.Random) -> Any:
    odd = draw.choice(["bounds", "normalize", "classes", "chunk", "execution"])
    value: Any = odd_value(draw) if draw.random() < 0.5 else (odd_tensor(draw), odd_tensor(draw))
    settings: dict[str, Any] = {odd: value}
    model = hf.TorchModel(torch.nn.Linear(INPUTS, CLASSES).eval(), **settings)
    return model.ask(torch.rand(2, INPUTS))


def _function_model(draw: random.Random) -> Any:
    odd = draw.choice(["bounds", "classes", "chunk", "decisions"])
    value: Any = odd_value(draw) if draw.random() < 0.5 else (odd_tensor(draw), odd_tensor(draw))
    settings: dict[str, Any] = {odd: value}
    answer = odd_tensor(draw, (2, CLASSES))
    model = hf.FunctionModel(lambda rows: answer if draw.random() < 0.3 else rows[:, :CLASSES], **settings)
    return model.ask(torch.rand(2, INPUTS))


def _features(draw: random.Random) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: hf.Features.of(odd_tensor(draw, (2, INPUTS))),
        lambda: hf.Features.pixels(odd_value(draw), draw.choice(["joint", "separate", odd_value(draw)])),
        lambda: hf.Features.patches(draw.choice([(1, 4, 4), odd_value(draw)]), odd_value(draw)),
        lambda: hf.Features.tokens(odd_tensor(draw, (2, INPUTS)), draw.choice([None, odd_value(draw)])),
        lambda: hf.Features.columns(draw.choice([3, odd_value(draw)]), odd_value(draw), odd_value(draw)),
        lambda: hf.Features.parse(odd_value(draw), torch.rand(1, 1, 4, 4)),
        lambda: hf.Features(
            odd_tensor(draw, (1, INPUTS)), draw.choice([INPUTS, odd_value(draw)]), names=odd_value(draw)
        ),
    ]
    return good_cases(draw).model.ask(torch.rand(2, INPUTS), features=draw.choice(makers)())


def _ranking(draw: random.Random) -> Any:
    cases = good_cases(draw)
    scores = odd_tensor(draw, (2, INPUTS)) if draw.random() < 0.6 else torch.rand(2, INPUTS)
    ranking = hf.Ranking.by_score(cases, scores, ties=draw.choice([None, 0, odd_value(draw)]))
    return ranking.top(odd_value(draw)) if draw.random() < 0.5 else cases[odd_value(draw)]


def _explain(draw: random.Random) -> Any:
    return _short(draw, hf.Explainer)(_cases(draw)).scores


def _measure(draw: random.Random) -> Any:
    cases = _cases(draw)
    return _short(draw, hf.Criterion)(cases, _subsets(draw, cases))


def _search(draw: random.Random) -> Any:
    cases = _cases(draw)
    start = odd_tensor(draw, (len(cases), 2, INPUTS)) if draw.random() < 0.3 else None
    return _short(draw, hf.Robustness)(cases, _subsets(draw, cases), start=start).radius


def _trace(draw: random.Random) -> Any:
    cases = good_cases(draw)
    ranking: Any = draw.choice([hf.Random()(cases), odd_value(draw)])
    criterion: Any = draw.choice(
        [hf.Insertion(draws=1, reference=0), hf.RobustnessRest(hf.MinNorm(steps=4)), odd_value(draw)]
    )
    curve = hf.trace(cases, ranking, criterion, draw.choice([[1, 2], (0.2, 0.5), odd_value(draw)]))
    return curve.auc()


def _wrong_cases(draw: random.Random) -> Any:
    kind: Any = draw.choice([hf.Explainer, hf.Criterion, hf.Robustness])
    one = _short(draw, kind)
    return one(odd_value(draw)) if kind is hf.Explainer else one(odd_value(draw), odd_tensor(draw))


def _explanation(draw: random.Random) -> Any:
    size: Any = draw.choice([1, 0.5, odd_value(draw)])
    return explain_cases(good_cases(draw), "random", hf.Random(), hf.MinNorm(steps=4), size)


def _model_call(draw: random.Random) -> Any:
    model: Any = good_cases(draw).model
    if draw.random() < 0.3:
        return model.on(draw.choice(["cpu", "cuda:99", "nowhere", "meta", odd_value(draw)]))
    return model(odd_tensor(draw, (2, INPUTS))).shape  # rows with NaN have NaN scores


CALLS: dict[str, Callable[[random.Random], Any]] = {
    "settings": _settings,
    "ask": _ask,
    "more settings": _settings,
    "torch model": _torch_model,
    "explain": _explain,
    "function model": _function_model,
    "measure": _measure,
    "features": _features,
    "search": _search,
    "ranking": _ranking,
    "trace": _trace,
    "wrong cases": _wrong_cases,
    "explanation": _explanation,
    "model call": _model_call,
    **DOORS,
    **TABLES,
}
