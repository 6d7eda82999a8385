"""A glossary: what each criterion and method of a report is, in the words of its own class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.criteria.criterion import Criterion
from holdfast.errors import HoldfastError
from holdfast.experiment.record import MeasureRecord, MethodRecord
from holdfast.experiment.results import Results
from holdfast.explainers.explainer import Explainer
from holdfast.prose import capital
from holdfast.registry import Registry

_SENTENCES = 2
_SECTIONS = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$|^>>>", re.MULTILINE)
_TERMS = {
    "relevant features": "The features that an explanation ranks first. How many they are is the size.",
    "radius": (
        "The length of the smallest change of an input that changes the prediction, as far as one was found. Each "
        "change was tried on the model. Unless a radius is proven, a smaller change may exist."
    ),
    "only these move, these are held": (
        "The two radii of an explanation: of changes of the relevant features alone (small is good), and of changes of "
        "all other features while the relevant ones keep their values (large is good)."
    ),
    "area": "The area under a curve: one number for all sizes of the relevant set, the value of most tables.",
    "no change found": (
        "A search ended without a change. The radius is then unknown, unless it is proven that there is none."
    ),
    "Holm's correction": (
        "Of many comparisons, some look significant by chance. The correction makes each test stricter, so that all of "
        "them together are wrong in at most 5 % of experiments."
    ),
}


class Entry(NamedTuple):
    """One entry of the glossary.

    Attributes:
        key: Its name in links.
        name: The criterion, method or term.
        text: What it is, in a few sentences.
        source: Where a method comes from; empty if that is not stated.
    """

    key: str
    name: str
    text: str
    source: str = ""


class Glossary(NamedTuple):
    """All entries of a report."""

    criteria: list[Entry]
    methods: list[Entry]
    terms: list[Entry]

    @property
    def keys(self) -> dict[str, str]:
        """The link of every criterion and method, by its name."""
        return {entry.name: entry.key for entry in [*self.methods, *self.criteria]}


def glossary(results: Results) -> Glossary:
    """Return what the criteria and methods of an experiment are.

    Args:
        results: The results of the experiment.
    """
    computed = set(results.methods())
    methods = [method for method in results.study.methods if method.name in computed]
    measures = results.measures("table", "probe")
    return Glossary(
        [_criterion(f"word-criterion-{place}", measure) for place, measure in enumerate(measures)],
        [_method(f"word-method-{place}", method) for place, method in enumerate(methods)],
        [Entry(f"word-term-{place}", name, text) for place, (name, text) in enumerate(_TERMS.items())],
    )


def _criterion(key: str, measure: MeasureRecord) -> Entry:
    return Entry(key, measure.name, _joined([*_abouts(Criterion.registry, [measure.kind]), _question(measure.why)]))


def _method(key: str, method: MethodRecord) -> Entry:
    classes = _classes(Explainer.registry, method.kinds)
    sources = dict.fromkeys(cls.source for cls in classes)
    variant = f"A variant of {method.of}." if method.of else ""
    text = _joined([*_abouts(Explainer.registry, method.kinds), variant, _question(method.why)])
    return Entry(key, method.name, text, "; ".join(source for source in sources if source != "none"))


def _question(why: str) -> str:
    return f"It answers the question: {why}" if why else ""


def _joined(parts: Iterable[str]) -> str:
    """Return the parts as one text; without any, a sentence that says so."""
    return " ".join(filter(None, parts)) or "Its class is not known here; its settings are at the end of the page."


def _classes(registry: Registry[Any], kinds: Iterable[str]) -> list[Any]:
    """Return the registered classes; those of extensions that are not installed here are left out."""
    try:
        known = registry.classes()
    except HoldfastError:  # a broken extension is no reason to refuse a report
        return []
    return [known[kind] for kind in kinds if kind in known]


def _abouts(registry: Registry[Any], kinds: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(about(cls) for cls in _classes(registry, kinds)))


def about(cls: type) -> str:
    """Return the first sentences of a class's own documentation, as plain text.

    >>> class Toy:
    ...     '''The ``first`` of two.
    ...
    ...     Higher is
    ...     better. And more.
    ...
    ...     Attributes:
    ...         seed: Not shown.
    ...     '''
    >>> about(Toy)
    'The first of two. Higher is better.'

    Args:
        cls: A class that is registered.
    """
    own = cls.__doc__ or ""
    if own.startswith(f"{cls.__name__}("):  # a dataclass without documentation has its signature there
        return ""
    prose = _SECTIONS.split(inspect.cleandoc(own))[0].replace("``", "")
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z(])", " ".join(prose.split()))
    return capital(" ".join(sentences[:_SENTENCES]))
