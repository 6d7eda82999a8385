"""The training loop, against the same steps written out, and the files that it leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

import holdfast as hf
from holdfast.data.texts import Texts
from holdfast.data.train import train_cnn
from holdfast.data.train_text import train_bilstm
from holdfast.data.training import count_correct, fit, write_weights
from holdfast.text import Vocabulary

X = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3
EPOCHS, BATCH = 3, 4


def _network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def _batches() -> Iterator[tuple[Tensor, Tensor]]:
    for batch in torch.randperm(len(X)).split(BATCH):
        yield X[batch], Y[batch]


def _accuracy(network: nn.Module) -> float:
    return count_correct(network, [(X, Y)]) / len(X)


def _digits(count: int) -> hf.data.Digits:
    generator = torch.Generator().manual_seed(count)
    return hf.data.Digits(torch.rand(count, 1, 28, 28, generator=generator), torch.arange(count) % 10)


def _texts(*texts: str) -> Texts:
    return Texts(texts, torch.arange(len(texts)) % 2, ("hockey", "space"), texts)


@pytest.mark.parametrize(("smoothing", "clip"), [(0.0, None), (0.05, 0.1)])
def test_fit_takes_the_steps_of_adamw_with_a_one_cycle_rate(smoothing: float, clip: float | None) -> None:
    network, expected = _network(), _network()
    accuracy = fit(network, _batches, _accuracy, epochs=EPOCHS, steps=len(X) // BATCH, smoothing=smoothing, clip=clip)
    _network()  # sets the seed again, so that the steps below draw the same numbers
    optimiser = torch.optim.AdamW(expected.parameters(), lr=2e-3, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=EPOCHS * len(X) // BATCH)
    for _ in range(EPOCHS):
        for x, y in _batches():
            loss = nn.functional.cross_entropy(expected(x), y, label_smoothing=smoothing)
            gradients = torch.autograd.grad(loss, list(expected.parameters()))
            for weight, gradient in zip(expected.parameters(), gradients, strict=True):
                weight.grad = gradient
            if clip is not None:
                nn.utils.clip_grad_norm_(expected.parameters(), clip)
            optimiser.step()
            rate.step()
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), expected.parameters(), strict=True))
    assert accuracy == _accuracy(expected)


def test_fit_reports_each_epoch_and_rounds_the_weights_before_the_last_measurement() -> None:
    network, measured, reported = _network(), list[nn.Module](), list[tuple[int, int, float]]()

    def measure(trained: nn.Module) -> float:
        measured.append(copy.deepcopy(trained))
        return len(measured) / 10

    accuracy = fit(
        network,
        _batches,
        measure,
        epochs=2,
        steps=3,
        precision=torch.half,
        progress=lambda *epoch: reported.append(epoch),
    )
    assert reported == [(1, 2, 0.1), (2, 2, 0.2)]
    assert accuracy == 0.2
    rounded = [all(torch.equal(w, w.half().float()) for w in trained.parameters()) for trained in measured]
    assert rounded == [False, True]


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    first, second, other = (tmp_path / f"{name}.safetensors" for name in ("first", "second", "other"))
    for path, seed in ((first, 1), (second, 1), (other, 2)):
        train_cnn(_digits(130), _digits(20), path, epochs=1, seed=seed)
    weights = [torch.cat([value.flatten() for value in load_file(path).values()]) for path in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_there_must_be_something_to_train_on(tmp_path: Path) -> None:
    vocabulary = Vocabulary(("puck", "orbit"), torch.eye(2))
    texts = _texts("...", "")
    out = tmp_path / "weights.safetensors"
    with pytest.raises(hf.HoldfastError, match="at least one epoch and one batch"):
        train_bilstm(texts, texts, vocabulary, out)
    with pytest.raises(hf.HoldfastError, match="at least one epoch and one batch"):
        train_cnn(_digits(10), _digits(10), out, epochs=0)
    with pytest.raises(hf.HoldfastError, match="must have the same classes"):
        train_bilstm(texts, Texts(texts.texts, texts.y, ("space", "hockey"), texts.names), vocabulary, out)
    assert not out.exists()


def test_weights_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "weights.safetensors"
    write_weights(path, {"a": torch.eye(3).T}, {"about": "three"})
    assert torch.equal(load_file(path)["a"], torch.eye(3))
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"about": "three"}

    def broken(file: Path, content: bytes) -> None:
        with file.open("wb") as out:
            out.write(content[:4])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", broken)
    with pytest.raises(hf.HoldfastError, match=r"cannot write .*weights\.safetensors: No space left"):
        write_weights(path, {"a": torch.zeros(3)}, {})
    assert torch.equal(load_file(path)["a"], torch.eye(3))
    assert [one.name for one in path.parent.iterdir()] == [path.name]
