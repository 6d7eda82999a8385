"""Experiments on texts from end to end: the embedded network, and marks of people in ERASER's layout."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.analyses.agreement import AgreementAnalysis
from holdfast.analyses.substitution import SubstitutionAnalysis, Substitutions
from holdfast.data import movie_reviews
from holdfast.data.train_text import train_bilstm
from holdfast.experiment import Store, run
from holdfast.experiment.build import build
from holdfast.experiment.results import Results
from holdfast.experiment.toml import load, named
from holdfast.report.page import as_markdown, write_page
from holdfast.report.verdict import verdict
from holdfast.table import Estimate
from holdfast.text import Vocabulary

HEAD = """
title = "A few texts"
main = "Greedy-AS"
published = "yahoo"
block = 2
sizes = [1, 2]
features = "words"
"""
REST = """
[model]
use = "text-bilstm"

[explainers.Grad]
use = "grad"

[explainers.EG]
use = "expected-gradients"
references = "words"
samples = 3

[explainers.Greedy-AS]
use = "greedy-as-quick"
budget = 2
step = 1
samples = 2

[criteria."Robustness-S̄r"]
use = "robustness-rest"
robustness = { use = "min-norm", steps = 8 }

[criteria."Robustness-Sr"]
use = "robustness-relevant"
robustness = { use = "min-norm", steps = 8 }

[criteria.Insertion]
use = "insertion"
reference = "words"
draws = 2

[criteria."Deletion, zero"]
use = "deletion"
reference = 0.0
"""
CHECKS = """
[analyses.references]
values = ["words", 0]
draws = 2

[analyses.substitution]
top = 2
judge = { use = "min-norm", steps = 8 }

[analyses.sanity]
examples = 1

[analyses.diagnostics]
examples = 1
judge = { use = "min-norm", steps = 8 }
seeds = 2

[gallery]
examples = 1
top = 2
targets = 1
judge = { use = "min-norm", steps = 8 }
"""


PROBE = """
[explainers."EG, without signs"]
use = "expected-gradients"
references = "words"
group = "probe"
of = "EG"
criteria = []
absolute = true
why = "does EG know which words speak against the class?"
"""


def _file(folder: Path, data: str, rest: str, head: str = HEAD) -> str:
    path = folder / "experiment.toml"
    path.write_text(f"{head}[data]\n{data}\n{rest}", encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_an_experiment_on_texts_ends_in_a_page_with_highlighted_words(tmp_path: Path) -> None:
    made = build(load(_file(tmp_path, 'use = "texts"\ncount = 3', REST + CHECKS)), "few", tmp_path)
    assert made.cases.model.classes[:2] == ("graphics", "for sale")
    with Store.open(tmp_path / "results.db") as store:
        run(made, store)
    results = Results(tmp_path / "results.db")
    assert results.missing == 0
    tables = {table.key: table for table in write_page(results, tmp_path / "report.html")}
    expected = {"robustness", "insertion-and-deletion", "substitution", "sanity", "diagnostics", "ranks"}
    assert expected <= set(tables)
    assert tables["robustness"].note.startswith("Areas under the curves from 1 to 2 features")
    assert 1.97 in tables["robustness"].rows[0], "the paper's figure for Grad"
    substitutions = results.analysis(SubstitutionAnalysis)
    assert isinstance(substitutions, Substitutions)
    assert substitutions.changed["Greedy-AS"].shape == (3,)
    assert list(substitutions.changed) == ["Grad", "EG", "Greedy-AS"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    one = results.explanations()[0]["Greedy-AS"]
    assert set(one.replacements) == set(one.relevant)
    assert one.text == results.study.texts[0].text
    for feature, word in one.replacements.items():
        start, end = one.spans[feature]
        assert one.text[start:end] == one.features.name(feature)
        assert re.search(rf"<mark[^>]*>{one.text[start:end]}<small> → {word}</small></mark>", page)
    target = results.targeted()[0][0]
    assert f"<h4>Why not {target.classes[target.target]}? " in page
    assert not target.replacements
    assert SubstitutionAnalysis.title in as_markdown(results, list(tables.values()))


def _movies(folder: Path) -> Path:
    """Reviews in which one word decides, and people marked it."""
    (folder / "docs").mkdir(parents=True)
    for split, numbers in (("train", range(20)), ("val", range(20, 24))):
        entries = []
        for number in numbers:
            word, kind = (("dull", "NEG"), ("fine", "POS"))[number % 2]
            name = f"{number}.txt"
            (folder / "docs" / name).write_text(f"the old {word} film was there all day long , said they .")
            span = {"docid": name, "start_token": 2, "end_token": 3, "text": word}
            entries.append({"annotation_id": name, "classification": kind, "evidences": [[span]]})
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_rankings_are_held_against_what_people_marked(tmp_path: Path) -> None:
    folder = _movies(tmp_path / "movies")
    words = ["the", "old", "dull", "fine", "film", "was", "there", "all", "day", "long", "said", "they"]
    drawn = torch.randn(len(words), 6, generator=torch.Generator().manual_seed(0))
    loud = ("NEGATIVE", "POSITIVE")  # as some name the classes
    learnt, held = (replace(movie_reviews(folder, part), classes=loud) for part in ("train", "val"))
    weights = tmp_path / "movies.safetensors"
    accuracy = train_bilstm(learnt, held, Vocabulary(tuple(words), drawn), weights, epochs=60)
    assert accuracy == 1.0
    data = f'use = "eraser-movies"\nroot = "{folder}"\nmin_words = 5'
    rest = REST.replace('use = "text-bilstm"', f'use = "text-bilstm"\nweights = "{weights}"') + PROBE
    made = build(load(_file(tmp_path, data, rest)), "people", tmp_path)
    with Store.open(tmp_path / "results.db") as store:
        run(made, store)
    results = Results(tmp_path / "results.db")
    found = results.analysis(AgreementAnalysis)
    assert isinstance(found, hf.analyses.Agreement)
    assert found.methods == ("Grad", "EG", "Greedy-AS", "EG, without signs")
    first = {name: float(precision[0].mean()) for name, precision in zip(found.methods, found.precision, strict=True)}
    top = hf.Grad()(made.cases).order
    assert first["Grad"] == float((top[:, 0] == 2).double().mean()), "people marked the third word of each"
    found_in_five = found.precision[0, 4]
    assert torch.equal(found_in_five, (top[:, :5] == 2).any(1).double() / 5)
    tables = {table.key: table for table in write_page(results, tmp_path / "report.html")}
    assert tables["people"].columns[1:7] == ("p@1", "p@2", "p@3", "p@4", "p@5", "mAP")
    for against, at_5, _, average, _ in tables["people-in-pairs"].rows:
        ours, theirs = found.methods.index(results.main), found.methods.index(str(against))
        gain = found.precision[ours, 4].mean() - found.precision[theirs, 4].mean()
        assert isinstance(at_5, Estimate)
        assert isinstance(average, Estimate)
        assert math.isclose(at_5.value, float(gain), abs_tol=1e-12)
        assert at_5.low <= at_5.value <= at_5.high
    assert len(tables["people-in-pairs"].rows) == len(found.methods) - 1
    assert "gain in p@5" in (tmp_path / "report.html").read_text(encoding="utf-8")
    said = verdict(results)
    assert said.startswith("Compared with what people marked, after Holm's correction, ")
    assert said.index("mAP") < said.index("by Robustness")
    assert "without signs" not in said, "a probe is no rival"
    assert "probes" not in tables, "nothing was asked of it but what people marked"
    with pytest.raises(hf.HoldfastError, match="trained on movies with --weights"):
        build(load(_file(tmp_path, data, REST)), "people", tmp_path)


@pytest.mark.parametrize(
    ("data", "rest", "words"),
    [
        ('use = "texts"\nmin_words = 2\nmax_words = 2', REST, "should be under the 2 words of the shortest text"),
        ('use = "texts"', REST + CHECKS.replace("top = 2", "top = 20", 1), "analyses.substitution.top, 20, should be"),
        ('use = "texts"', REST + CHECKS.replace("top = 2\nt", "top = 20\nt"), "gallery.top, 20, should be under"),
        (
            'use = "texts"\nmin_words = 9\nmax_words = 8',
            REST,
            "data: min_words must be at most max_words, got 9 and 8",
        ),
        (
            'use = "mnist"',
            REST.replace("text-bilstm", "mnist-cnn"),
            'should not be "words" for mnist',
        ),
        ('use = "texts"', REST.replace("text-bilstm", "mnist-cnn"), "text-bilstm or huggingface:NAME for texts"),
        ('use = "texts"\nroot = "nowhere"', REST, "there is no nowhere"),
        ('use = "eraser-movies"', REST, "name their folder or archive"),
        (
            'use = "texts"',
            REST.replace('"text-bilstm"', '"text-bilstm"\nweights = "train"'),
            "holdfast train text-bilstm",
        ),
        ('use = "texts"', REST.replace('"text-bilstm"', '"huggingface:x"\nweights = "y"'), "brings its own"),
        ('use = "texts"', REST.replace('"text-bilstm"', '"text-bilstm"\nweights = "y"'), "cannot read the network y"),
        ('use = "eraser-movies"\nroot = "nowhere.zip"', REST, "cannot read nowhere.zip"),
        ('use = "texts"\nmin_words = 1000\nmax_words = 1000', REST, "no text of texts has 1000 words, of which"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, data: str, rest: str, words: str) -> None:
    with pytest.raises(hf.HoldfastError, match=words):
        build(load(_file(tmp_path, data, rest)), "bad", tmp_path)


def test_texts_have_words_for_features(tmp_path: Path) -> None:
    head = HEAD.replace('"words"', '"pixels"')
    with pytest.raises(hf.HoldfastError, match="features of texts must be words"):
        build(load(_file(tmp_path, 'use = "texts"', REST, head)), "bad", tmp_path)
    numbers = REST.replace('reference = "words"', "reference = 0.0").replace('references = "words"\n', "")
    head = HEAD.replace('features = "words"\n', "")
    with pytest.raises(hf.HoldfastError, match='references should not be "words" for mnist: it has none'):
        build(load(_file(tmp_path, 'use = "mnist"', REST.replace("text-bilstm", "mnist-cnn"), head)), "x", tmp_path)
    made = build(load(_file(tmp_path, 'use = "texts"\ncount = 2', numbers, head)), "default", tmp_path)
    assert made.cases.features.kind == "words"


def test_named_text_experiments_load() -> None:
    assert {"paper-text", "paper-text-quick", "people-movies", "people-movies-quick"} <= set(named())
    for name in ("paper-text", "paper-text-quick", "people-movies", "people-movies-quick"):
        load(name)
