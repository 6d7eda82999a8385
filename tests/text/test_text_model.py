"""Texts as cases: what moves, what never does, and that a batch of ragged texts is its texts one at a time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.analyses.sensitivity import neighbours
from holdfast.explainers.estimators import Draw
from holdfast.text import BiLstm, TextModel, Vocabulary, WordReader

WORDS = ("a", "bad", "cat", "dog", "fine", "good", "house", "is", "not", "the")
TEXTS = ("the cat is good", "a dog", "the house is not a bad house", "fine fine zebra")


class Mean(nn.Module):
    """Linear in the mean of the words that are there: radii in closed form."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, rows: Tensor) -> Tensor:
        there = rows[..., -1:]
        return (rows[..., :-1] * there).sum(1) / there.sum(1).clamp_min(1) @ self.weight.T


def _vocabulary() -> Vocabulary:
    return Vocabulary(WORDS, torch.randn(len(WORDS), 6, generator=torch.Generator().manual_seed(0)))


def linear() -> TextModel:
    weight = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
    return TextModel(WordReader(_vocabulary(), longest=8), Mean(weight).eval(), ("sad", "dull", "glad"))


def recurrent() -> TextModel:
    torch.manual_seed(2)
    network = BiLstm(6, 3, hidden=5).eval().requires_grad_(False)
    for weight in network.parameters():
        weight.mul_(3)
    return TextModel(WordReader(_vocabulary(), longest=8), network, ("sad", "dull", "glad"))


def test_words_are_features_and_padding_never_moves() -> None:
    model = linear()
    read = model.read(TEXTS)
    assert [[word.text for word in words] for words in read.words] == [text.split() for text in TEXTS]
    cases = model.ask(read)
    assert cases.features.count == 7
    assert hf.Grad()(cases).count.tolist() == [4, 2, 7, 3]
    radii = hf.MinNorm()(cases, torch.ones(4, 1, 7, dtype=torch.bool))
    move = radii.witness[:, 0] - cases.x
    assert bool((move[..., -1] == 0).all()), "what says where words stand never moves"
    assert bool((move[1, 2:] == 0).all()), "nor does padding"


def test_radii_are_those_of_the_linear_closed_form() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    weight = next(model.classifier.module.parameters()).detach()
    apart = torch.cdist(weight, weight)
    subsets = torch.zeros(4, 2, 7, dtype=torch.bool)
    subsets[:, 0, :2], subsets[:, 1, 1] = True, True
    radii = hf.MinNorm(steps=50)(cases, subsets)
    logits = model.classifier(cases.x)
    for case, label in enumerate(cases.label.tolist()):
        for k, moving in enumerate((2, 1)):
            length = len(TEXTS[case].split())
            exact = min(
                float((logits[case, label] - logits[case, j]) / apart[label, j]) * length / math.sqrt(moving)
                for j in range(3)
                if j != label
            )
            # A search leaves a row once its linearised boundary cannot improve it by two thousandths.
            assert exact * (1 - 1e-6) <= float(radii.radius[case, k]) <= exact * 1.003


@pytest.mark.slow
def test_a_ragged_batch_is_its_texts_one_at_a_time() -> None:
    model = recurrent()
    together = model.ask(TEXTS)
    words = model.random_words
    for explainer in (
        hf.GreedyAS(budget=2, step=1, samples=4),
        hf.GreedyAS(budget=2, step=1, samples=4, shortlist=2),
        hf.OneStepBanzhaf(samples=4),
        hf.Greedy(budget=2, step=1),
        hf.Grad(),
        hf.IntegratedGradients(),
        hf.ExpectedGradients(words, samples=20),
        hf.KernelShap(samples=20),
        hf.LeaveOneOut(words),
        hf.Counterfactual(),
        hf.Anchor(reference=words),
        hf.Random(),
    ):
        ranking = explainer(together)
        for number, text in enumerate(TEXTS):
            single = explainer(model.ask(text))
            count = int(single.count[0])
            assert torch.allclose(single.scores[0], ranking.scores[number, :count], rtol=1e-3, atol=1e-4), explainer
            assert single.order[0].tolist() == ranking.order[number, :count].tolist(), (explainer, text)
    anchor = hf.Anchor(reference=words, batch=20)
    assert anchor.find(together) == [anchor.find(model.ask(text))[0] for text in TEXTS], "rule, precision and bound"
    near = neighbours(together, 0.1, 3)
    for number, text in enumerate(TEXTS):
        beside = neighbours(model.ask(text), 0.1, 3)
        assert torch.allclose(near.x[3 * number : 3 * number + 3, : beside.x.shape[1]], beside.x, atol=1e-6), text
    judge = hf.Judge(steps=10, classes=1, starts=2)
    for criterion in (hf.RobustnessRest(judge), hf.RobustnessRelevant(judge), hf.Insertion(words), hf.Deletion(0.0)):
        values = criterion(together, hf.Random()(together).top([1, 2]))
        for number, text in enumerate(TEXTS):
            alone = model.ask(text)
            found = criterion(alone, hf.Random()(alone).top([1, 2]))
            assert torch.allclose(found[0], values[number], rtol=1e-3), (criterion, text)


def test_a_regression_leaves_out_subsets_that_leave_no_word_to_move() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    objective = hf.RobustnessRest(hf.MinNorm(steps=20))
    present = hf.ranking.features_of(cases)
    draw = Draw(objective, cases, torch.zeros_like(present), present, 60, 0.5, seed=3)
    found, subsets = hf.Regression(paired=False)(draw).values, draw.subsets()
    values = objective(cases, subsets)
    for case, count in enumerate((4, 2, 7, 3)):
        joined = subsets[case, :, :count]
        some = ~joined.all(1)
        assert bool(torch.isinf(values[case][~some]).all())
        design = torch.cat([joined[some], torch.ones_like(joined[some][:, :1])], 1).double()
        fitted = torch.linalg.lstsq(design, values[case][some].double()[:, None]).solution[:count, 0]
        assert torch.allclose(found[case, :count].double(), fitted, atol=1e-4)
    assert bool(torch.isinf(values).any()), "some subset of two words holds both"
    greedy = hf.GreedyAS(objective, budget=3, step=1, samples=60, inclusion=0.5, estimator=hf.Regression())
    together = greedy(cases)
    for number in (0, 2, 3):
        assert torch.equal(greedy(model.ask(TEXTS[number])).order[0], together.order[number, : together.count[number]])
    assert sorted(together.order[1, :2].tolist()) == [0, 1], "two words are soon used up beside seven"


def test_radii_of_unbounded_words_are_never_capped() -> None:
    model = linear()
    cases = model.ask(TEXTS[:1])
    none = torch.zeros(1, 1, cases.features.count, dtype=torch.bool)
    assert math.isinf(float(hf.MinNorm()(cases, none).radius))
    curve = hf.trace(cases, hf.Grad()(cases), hf.RobustnessRelevant(hf.MinNorm()), (1, 2))
    assert bool(torch.isinf(curve.ceiling).all())


def test_random_words_stand_in_for_words_and_leave_padding_alone() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    points = hf.reference.reference_points(cases, model.random_words, seed=3)
    assert bool((points[..., -1] == cases.x[..., -1]).all())
    known = {tuple(row.tolist()) for row in model.reader.vectors[:-1]}
    assert tuple(points[0, 0, :-1].tolist()) in known
    assert bool((points[1, 2:] == 0).all())
    assert hf.Insertion(model.random_words)(cases, hf.Grad()(cases).top([1, 2])).shape == (4, 2)


def test_classes_are_asked_about_by_name() -> None:
    model = linear()
    label = int(model.ask(TEXTS[0]).label)
    other = next(name for number, name in enumerate(model.classes) if number != label)
    asked = model.ask(TEXTS[:1], target=other.upper())
    assert model.classifier.class_name(int(asked.target)) == other
    with pytest.raises(hf.HoldfastError, match=r"there is no class 'sport': use one of sad, dull, glad"):
        model.ask(TEXTS[0], target="sport")
    with pytest.raises(hf.HoldfastError, match="target must be a class from 0 to 2"):
        model.ask(TEXTS[0], target=3)
    with pytest.raises(hf.HoldfastError, match="its own label"):
        model.ask(TEXTS[0], target=label)
    assert model.ask(TEXTS[:2], label=torch.tensor([0, 2])).label.tolist() == [0, 2], (
        "numbers as a classifier takes them"
    )
    assert model.ask(TEXTS[:2], label=["sad", 2]).label.tolist() == [0, 2]
    misnamed = TextModel(model.reader, model.classifier.module, ("only",))
    with pytest.raises(hf.HoldfastError, match="1 classes are named, and the model has 3"):
        misnamed.ask(TEXTS[0])


def test_bad_texts_are_refused_in_one_sentence() -> None:
    model = linear()
    for texts, words in {
        "": "text 0 is empty",
        " \n": "text 0 is empty",
        "?! …": "no word in it",
        "zebra quagga": "knows none of the 2 words of text 0",
    }.items():
        with pytest.raises(hf.HoldfastError, match=words):
            model.read(texts)
    with pytest.raises(hf.HoldfastError, match="text 1 is empty"):
        model.read(["the cat", ""])
    with pytest.raises(hf.HoldfastError, match="at least one text"):
        model.read([])
    with pytest.raises(hf.HoldfastError, match="a text or several, got NoneType"):
        model.ask(None)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(hf.HoldfastError, match="text 0 is no text"):
        model.read([3])  # type: ignore[list-item]  # wrong on purpose


def test_a_long_text_is_cut_and_says_so() -> None:
    model = linear()
    with pytest.warns(hf.HoldfastWarning, match="text 0 has 11 words, .* the last 3 are left out"):
        read = model.read("the cat is not a dog and is not a house")
    assert len(read.words[0]) == 8
