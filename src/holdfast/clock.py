"""Time on a device: GPUs compute asynchronously, so a clock must wait for them."""

from __future__ import annotations

import time

import torch


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished all work that was submitted to it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def now(device: torch.device) -> float:
    """Return the time in seconds at which all work submitted to the device is done."""
    synchronize(device)
    return time.perf_counter()
