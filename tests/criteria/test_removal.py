"""Insertion and Deletion: closed forms, an independent re-writing, references and scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.curve import FULL
from holdfast.models.torch import layers_of
from toys import small_net


def _linear() -> tuple[hf.Cases, Tensor, Tensor]:
    net = nn.Linear(12, 3).double().eval().requires_grad_(False)
    return hf.TorchModel(net, (0, 1)).ask(torch.rand(4, 12).double()), net.weight, net.bias


@pytest.mark.parametrize("reference", [0.0, 0.25, 1.0])
def test_linear_logits_in_closed_form(reference: float) -> None:
    cases, weight, bias = _linear()
    ranking = hf.Random()(cases)
    sizes = (0.25, 0.5, 0.75)
    worth = weight[cases.label] * (cases.x - reference)  # what keeping each feature adds
    nothing = bias[cases.label] + reference * weight[cases.label].sum(1)
    added = worth.gather(1, ranking.order).cumsum(1)[:, [2, 5, 8]]
    inserted = hf.trace(cases, ranking, hf.Insertion(reference), sizes)
    deleted = hf.trace(cases, ranking, hf.Deletion(reference), sizes)
    torch.testing.assert_close(inserted.values, nothing[:, None] + added)
    torch.testing.assert_close(deleted.values, nothing[:, None] + worth.sum(1, keepdim=True) - added)
    steps = inserted.values[:, :-1] + inserted.values[:, 1:]
    torch.testing.assert_close(inserted.auc(), 25 * steps.sum(1) / 2)


@pytest.mark.parametrize("score", ["logit", "probability", "margin"])
@pytest.mark.parametrize("reference", [0.3, "uniform"])
def test_the_formula_written_again(score: str, reference: float | str) -> None:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)).double()
    net = small_net()
    cases = hf.TorchModel(net, (0, 1)).ask(x)
    relevant = torch.rand(3, 4, 12, generator=torch.Generator().manual_seed(1)) < 0.4
    measured = hf.Insertion(reference, score, draws=3, seed=7)(cases, relevant)  # type: ignore[arg-type]  # a word from the list above
    for b in range(3):
        for k in range(4):
            values = []
            for draw in range(3):
                seed = 7 * 1_000_003 + draw + 500_009
                noise = torch.rand(1, 12, generator=torch.Generator().manual_seed(seed)).double()[0]
                point = noise if reference == "uniform" else torch.full((12,), 0.3, dtype=torch.double)
                mixed = x[b] * relevant[b, k] + point * ~relevant[b, k]
                out = net(mixed[None])[0]
                label = int(cases.label[b])
                others = [float(value) for place, value in enumerate(out) if place != label]
                scores = {"logit": float(out[label]), "probability": float(out.softmax(0)[label])}
                values.append((scores | {"margin": float(out[label]) - max(others)})[score])
            assert float(measured[b, k]) == pytest.approx(sum(values) / 3)
    opposite = hf.Deletion(reference, score, draws=3, seed=7)(cases, ~relevant)  # type: ignore[arg-type]  # a word from the list above
    torch.testing.assert_close(opposite, measured)


def test_full_curves_run_from_nothing_to_everything() -> None:
    cases, *_ = _linear()
    curve = hf.trace(cases, hf.Grad()(cases), hf.Insertion(0.5), FULL)
    assert len(curve.sizes) == 21
    own = cases.model(cases.x).gather(1, cases.label[:, None])[:, 0]
    bare = cases.model(torch.full_like(cases.x, 0.5)).gather(1, cases.label[:, None])[:, 0]
    torch.testing.assert_close(curve.values[:, -1], own)
    torch.testing.assert_close(curve.values[:, 0], bare)


def test_why_not_t_takes_the_targets_score_off() -> None:
    cases, *_ = _linear()
    target = (cases.label + 1) % 3
    relevant = torch.rand(4, 2, 12) < 0.5
    both, other = cases.model.ask(cases.x, target=target), cases.model.ask(cases.x, label=target)
    criterion = hf.Insertion(0.0)
    torch.testing.assert_close(criterion(both, relevant), criterion(cases, relevant) - criterion(other, relevant))


def test_random_words_take_the_place_of_words() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(5 * 3, 2)).double().eval().requires_grad_(False)
    cases = hf.TorchModel(net).ask(torch.randn(2, 5, 3).double(), features=hf.Features.tokens(torch.ones(2, 5)))
    vectors = torch.randn(7, 3)
    measured = hf.Insertion(hf.RandomWords(vectors), draws=1)(cases, torch.zeros(2, 1, 5, dtype=torch.bool))
    which = torch.randint(7, (5,), generator=torch.Generator().manual_seed(500_009))
    expected = net(vectors[which].double()[None])[0][cases.label]
    torch.testing.assert_close(measured[:, 0], expected)
    assert "RandomWords(tensor(7, 3)#" in repr(hf.Insertion(hf.RandomWords(vectors)))
    with pytest.raises(hf.HoldfastError, match=r"random words of 3 numbers are for embedded text"):
        hf.Deletion(hf.RandomWords(vectors))(_linear()[0], torch.ones(4, 1, 12, dtype=torch.bool))
    with pytest.raises(hf.HoldfastError, match="word vectors hold NaN"):
        hf.RandomWords(torch.full((2, 3), torch.nan))
    with pytest.raises(hf.HoldfastError, match="word vectors must be floats"):
        hf.RandomWords(torch.zeros(3))


def test_bad_settings_and_scores_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="score must be one of logit, probability, margin, got 'loss'"):
        hf.Insertion(score="loss")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(hf.HoldfastError, match="draws must be"):
        hf.Deletion(draws=0)
    with pytest.raises(hf.HoldfastError, match="needs a model with bounds"):
        hf.Insertion()(hf.TorchModel(small_net()).ask(torch.rand(1, 12)), torch.ones(1, 1, 12, dtype=torch.bool))

    class Fragile(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([x.sum(1), (x[:, 0] / x[:, 0]) - 3], 1)

    cases = hf.TorchModel(Fragile().eval()).ask(torch.rand(2, 3) + 0.1)
    with pytest.raises(hf.HoldfastError, match="NaN or infinite scores when features are removed"):
        hf.Deletion(0.0)(hf.TorchModel(Fragile().eval()).ask(cases.x, label=1), torch.ones(2, 1, 3, dtype=torch.bool))


def test_probabilities_of_a_black_box_are_not_made_twice() -> None:
    model = hf.FunctionModel(lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], 1), (0, 1))
    cases = model.ask(torch.tensor([[0.9, 0.3]]))
    everything = torch.ones(1, 1, 2, dtype=torch.bool)
    assert float(hf.Insertion(0.0, "probability")(cases, everything)) == pytest.approx(0.9)
    scores = hf.FunctionModel(lambda rows: np.stack([3 * rows[:, 0], rows[:, 1]], 1), (0, 1)).ask(cases.x)
    expected = torch.tensor([2.7, 0.3]).softmax(0)[0]
    assert float(hf.Insertion(0.0, "probability")(scores, everything)) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("reference", ["uniform", "blur", "mean", 0.2])
def test_a_case_has_the_same_value_alone_and_in_a_batch(reference: str | float) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(75, 8), nn.ReLU(), nn.Linear(8, 3)).double().eval()
    cases = hf.TorchModel(net.requires_grad_(False), (0, 1)).ask(torch.rand(3, 3, 5, 5).double())
    relevant = torch.rand(3, 2, 25) < 0.5
    criterion = hf.Deletion(reference, draws=2)  # type: ignore[arg-type]  # a word from the list above
    alone = torch.cat([criterion(cases[case], relevant[case : case + 1]) for case in range(3)])
    torch.testing.assert_close(alone, criterion(cases, relevant))


def test_deletion_is_quantus_pixel_flipping_where_they_coincide() -> None:
    import quantus

    cases = hf.data.mnist_cnn().ask(hf.data.mnist().x[:3])
    ranking = hf.Grad()(cases)
    flipping = quantus.PixelFlipping(98, normalise=False, perturb_baseline="black", disable_warnings=True)
    scores = ranking.scores.reshape(-1, 1, 28, 28).numpy()
    theirs = flipping(layers_of(cases.model).module, cases.x.numpy(), cases.label.numpy(), scores, softmax=True)
    ours = hf.Deletion(0.0, "probability")(cases, ranking.top([98 * k for k in range(1, 9)]))
    torch.testing.assert_close(ours, torch.as_tensor(np.array(theirs)).float(), atol=1e-5, rtol=1e-4)


def test_inputs_that_are_the_same_are_asked_about_once() -> None:
    x = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)).double()
    x[:, 4:] = 0.5  # eight features at their reference
    cases = hf.TorchModel(small_net(), (0, 1)).ask(x)
    before = cases.model.queries
    relevant = hf.Random()(cases).top(list(range(1, 13)))
    measured = hf.Deletion(0.5)(cases, relevant)
    assert (cases.model.queries - before).forward <= 3 * 5
    every = torch.cat([hf.Deletion(0.5)(cases, relevant[:, k : k + 1]) for k in range(12)], 1)
    torch.testing.assert_close(measured, every)
