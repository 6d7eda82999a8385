from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.text import TextModel, Vocabulary, WordReader, by_word, substitute
from text.test_text_model import TEXTS, WORDS, Mean, linear


def _first_met(at: Tensor, move: Tensor, vectors: Tensor) -> tuple[int, float]:
    """By walking: the first step of a fine walk whose nearest vector is another one."""
    own = int((vectors - at).norm(dim=1).argmin())
    for step in range(1, 40_000):
        near = int((vectors - (at + step / 1000 * move)).norm(dim=1).argmin())
        if near != own:
            return near, step / 1000
    return -1, math.inf


def test_the_word_is_the_first_one_met_on_the_way() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    radii = hf.MinNorm()(cases, hf.Grad()(cases).top([2]))
    new = substitute(cases, radii.witness, model.known_vectors)
    met = 0
    for case in range(3):  # the last has a word without a vector of its own
        for place in range(cases.x.shape[1]):
            move = (radii.witness[case, 0] - cases.x[case])[place, :-1]
            if not bool((move != 0).any()):
                assert int(new.rows[case, 0, place]) == -1
                continue
            row, times = _first_met(cases.x[case, place, :-1], move, model.known_vectors)
            assert int(new.rows[case, 0, place]) == row
            if row >= 0:
                assert float(new.times[case, 0, place]) == pytest.approx(times, abs=2e-3)
                met += 1
    assert met > 3


def test_decisions_are_those_of_the_text_with_the_new_words() -> None:
    model = linear()
    cases = model.ask(TEXTS[:3])
    radii = hf.MinNorm()(cases, torch.ones(3, 1, cases.features.count, dtype=torch.bool))
    new = substitute(cases, radii.witness, model.known_vectors)
    for case, text in enumerate(TEXTS[:3]):
        owner = cases.features.ids[case, :, 0].tolist()
        into = by_word(new.rows[case, 0].tolist(), owner, model.known_names)
        words = [into.get(number, word) for number, word in enumerate(text.split())]
        assert (int(model.ask(" ".join(words)).label) != int(cases.label[case])) == bool(new.changed[case, 0])
        ends = radii.witness[case, 0, : len(words), :-1]
        nearest = [model.known_names[int((model.known_vectors - end).norm(dim=1).argmin())] for end in ends]
        assert (int(model.ask(" ".join(nearest)).label) != int(cases.label[case])) == bool(new.rounded[case, 0])


def test_rounding_goes_to_the_word_nearest_at_the_end_not_to_the_first_on_the_way() -> None:
    vocabulary = Vocabulary(("zero", "one", "two", "three"), torch.arange(4.0)[:, None])
    network = Mean(torch.tensor([[-1.0], [1.0]]))
    model = TextModel(WordReader(vocabulary), Shifted(network, 2.6).eval())
    cases = model.ask("zero")
    radii = hf.MinNorm()(cases, torch.ones(1, 1, 1, dtype=torch.bool))
    assert float(radii.radius) == pytest.approx(2.6, rel=1e-2)
    new = substitute(cases, radii.witness, model.known_vectors)
    assert int(new.rows[0, 0, 0]) == 1, "one is met first"
    assert float(new.times[0, 0, 0]) == pytest.approx(0.5 / 2.6, rel=1e-2)
    assert not bool(new.changed), "one is not over 2.6"
    assert bool(new.rounded), "three, the nearest, is"


class Shifted(nn.Module):
    def __init__(self, network: nn.Module, by: float):
        super().__init__()
        self.network, self.by = network, by

    def forward(self, rows: Tensor) -> Tensor:
        moved = torch.cat([rows[..., :-1] - self.by, rows[..., -1:]], 2)
        out: Tensor = self.network(moved)
        return out


def test_random_words_are_drawn_where_the_new_words_are() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    radii = hf.MinNorm()(cases, hf.Grad()(cases).top([1]))
    new = substitute(cases, radii.witness, model.known_vectors, seed=5)
    for case, text in enumerate(TEXTS):
        turned = 0
        for draw in range(10):
            generator = torch.Generator().manual_seed(5 * 1_000_003 + draw)
            drawn = (len(WORDS) * torch.rand(cases.x.shape[1], generator=generator, dtype=torch.double)).long()
            words = text.split()
            put = [WORDS[drawn[at]] if int(new.rows[case, 0, at]) >= 0 else word for at, word in enumerate(words)]
            turned += int(model.ask(" ".join(put)).label) != int(cases.label[case])
        assert float(new.by_chance[case, 0]) == pytest.approx(turned / 10), text


def test_a_censored_change_changes_nothing_and_shapes_are_checked() -> None:
    model = linear()
    cases = model.ask(TEXTS)
    radii = hf.MinNorm()(cases, torch.zeros(4, 1, cases.features.count, dtype=torch.bool))
    new = substitute(cases, radii.witness, model.known_vectors)
    assert bool((new.rows == -1).all())
    assert not bool(new.changed.any())
    assert not bool(new.by_chance.any())
    wrong = model.ask(TEXTS, label=(cases.label + 1) % 3)
    asked = hf.MinNorm()(wrong, torch.ones(4, 1, wrong.features.count, dtype=torch.bool))
    assert bool((asked.radius == 0).all())
    assert not bool(substitute(wrong, asked.witness, model.known_vectors).changed.any()), "no word was put anywhere"
    with pytest.raises(hf.HoldfastError, match=r"vectors must be \[V, 6\]"):
        substitute(cases, radii.witness, torch.zeros(3, 5))
