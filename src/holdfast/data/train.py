"""Training of the networks whose weights the package carries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from holdfast.data.digits import Digits
from holdfast.data.networks import mnist_cnn

EPOCHS, BATCH = 12, 100


def train_cnn(
    training: Digits,
    test: Digits,
    out: Path,
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int, float], None] | None = None,
) -> float:
    """Train the digit network, write safetensors to ``out``, return its accuracy on ``test``.

    AdamW with a one-cycle rate, no augmentation, no validation: the weights are those of the last step.
    ``progress(epoch, epochs, accuracy)`` is called after each epoch.
    """
    torch.manual_seed(seed)
    network = mnist_cnn().to(device)
    x, y = training.x.to(device), training.y.to(device)
    batches = -(-len(x) // BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=epochs * batches)
    accuracy = 0.0
    for epoch in range(epochs):
        network.train()
        for batch in torch.randperm(len(x)).to(device).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
            optimiser.step()
            rate.step()
        accuracy = measure_accuracy(network, test)
        if progress is not None:
            progress(epoch + 1, epochs, accuracy)
    about = {"accuracy of the network": f"{accuracy:.2%} of {len(test):,} test images"}
    save_file({name: value.cpu().contiguous() for name, value in network.state_dict().items()}, out, about)
    return accuracy


def measure_accuracy(network: nn.Module, digits: Digits) -> float:
    """The share of digits the network names right."""
    network.eval()
    device = next(network.parameters()).device
    right = 0
    with torch.no_grad():
        for x, y in zip(digits.x.split(500), digits.y.split(500), strict=True):
            right += int((network(x.to(device)).argmax(1).cpu() == y).sum())
    return right / len(digits)
