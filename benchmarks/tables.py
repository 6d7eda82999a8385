"""What the benchmarks share: tables as printed, the hardware, and the bare speed of a network."""

from __future__ import annotations

import os
import time

import torch

import holdfast as hf
from holdfast.experiment.performance import processor
from holdfast.models.torch import layers_of

RESULTS: dict[str, list[dict[str, object]]] = {}


def hardware(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    return f"{processor()}, {os.cpu_count()} cores"


def show(title: str, rows: list[dict[str, object]]) -> None:
    RESULTS[title] = rows
    columns = list(rows[0])
    text = [[_cell(row[column]) for column in columns] for row in rows]
    width = [max(len(line[i]) for line in [columns, *text]) for i in range(len(columns))]
    print(f"\n## {title}\n")
    for line in [columns, ["-" * w for w in width], *text]:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)) + " |", flush=True)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def bare_speed(cases: hf.Cases) -> float:
    """Rows a second of forward + gradient, at the best batch size."""
    gpu = cases.x.is_cuda
    net, best = layers_of(cases.model).module, 0.0
    for size in (512, 1024, 2048, 4096, 8192) if gpu else (16, 32, 64, 128, 256, 512):
        x = cases.x[:1].expand(size, *[-1] * (cases.x.ndim - 1)).contiguous()
        repeats = max(4, 20_000 // size) if gpu else max(4, 3_000 // size)
        for warm in (True, False):
            started = time.perf_counter()
            for _ in range(3 if warm else repeats):
                x.requires_grad_(True)
                z = net(x)
                torch.autograd.grad((z[:, 0] - z[:, 1]).sum(), x)
            wait(gpu)
        best = max(best, repeats * size / (time.perf_counter() - started))
    return best


def wait(gpu: bool) -> None:
    if gpu:
        torch.cuda.synchronize()
