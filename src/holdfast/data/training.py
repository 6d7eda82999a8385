"""Training of a classifier: one loop for the networks whose weights the package contains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from holdfast.errors import HoldfastError
from holdfast.files import write_bytes

Batches = Callable[[], Iterable[tuple[Tensor, Tensor]]]
"""Makes the batches of one epoch: inputs ``[B, ...]`` and their classes ``[B]``, on the device of the network."""

EpochProgress = Callable[[int, int, float], None]
"""Called after each epoch with its number from 1, the number of epochs, and the accuracy on the test set."""

_RATE, _DECAY = 2e-3, 0.01


def fit(
    network: nn.Module,
    batches: Batches,
    measure: Callable[[nn.Module], float],
    *,
    epochs: int,
    steps: int,
    smoothing: float = 0.0,
    clip: float | None = None,
    precision: torch.dtype = torch.float32,
    progress: EpochProgress | None = None,
) -> float:
    """Train a network in place by cross-entropy with AdamW (weight decay 0.01) and a one-cycle rate up to 0.002.

    There is no validation and no early stop: the weights are those of the last step.

    Args:
        network: The network. It maps ``[B, ...]`` to logits ``[B, C]``.
        batches: Makes the batches of an epoch. It is called once an epoch, and its batches are taken one by one, so
            that random numbers are drawn in the same order on every run.
        measure: Returns the accuracy of the network on the test set. It is called after each epoch.
        epochs: Number of epochs.
        steps: Number of batches in an epoch.
        smoothing: Share of the label that is spread evenly over the classes.
        clip: The largest norm of the gradient. None: gradients are not clipped.
        precision: The type that the weights are stored in. After the last step they are rounded to it, so that the
            last accuracy is that of the stored network.
        progress: Called after each epoch.

    Returns:
        The accuracy after the last epoch.

    Raises:
        HoldfastError: There is nothing to train on.
    """
    if epochs < 1 or steps < 1:
        raise HoldfastError(f"training needs at least one epoch and one batch, got {epochs} epochs of {steps} batches.")
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=_RATE, total_steps=epochs * steps)
    accuracy = 0.0
    for epoch in range(1, epochs + 1):
        network.train()
        for x, y in batches():
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(x), y, label_smoothing=smoothing).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(network.parameters(), clip)
            optimiser.step()
            rate.step()
        if epoch == epochs:
            network.to(precision).float()
        accuracy = measure(network)
        if progress is not None:
            progress(epoch, epochs, accuracy)
    return accuracy


def count_correct(network: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> int:
    """Return the number of inputs that the network classifies correctly. It is left in evaluation mode.

    Args:
        network: The network. It maps ``[B, ...]`` to logits ``[B, C]``.
        batches: Inputs ``[B, ...]`` and their classes ``[B]``, on the CPU or the device of the network.
    """
    network.eval()
    device = next(network.parameters()).device
    with torch.no_grad():
        return sum(int((network(x.to(device)).argmax(1).cpu() == y.cpu()).sum()) for x, y in batches)


def write_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors to a safetensors file, whole or not at all.

    Args:
        path: The file to write. Its folder is created if needed.
        tensors: The tensors by name.
        metadata: Text that is stored beside them.

    Raises:
        HoldfastError: The file cannot be written.
    """
    write_bytes(path, save({name: value.cpu().contiguous() for name, value in tensors.items()}, dict(metadata)))
