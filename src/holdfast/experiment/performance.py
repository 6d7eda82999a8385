"""Jobs computed: their units, what they cost, and on which machine."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.clock import synchronize
from holdfast.errors import HoldfastWarning
from holdfast.experiment.jobs import Job
from holdfast.experiment.store import Unit
from holdfast.models.model import DifferentiableModel
from holdfast.prose import counted


def perform(
    jobs: Sequence[Job], cases: Cases, needed: Sequence[Sequence[Unit]], progress: Progress | None = None
) -> list[Unit]:
    """Compute the units of jobs on the same cases.

    Args:
        jobs: One job, or several of the same group.
        cases: The block that they work on.
        needed: For each job the units that it needs.
        progress: Called with (done, total).

    Returns:
        One unit for each job; costs are divided equally among them.
    """
    _warm_up(cases)
    synchronize(cases.x.device)
    before, started = cases.model.queries, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HoldfastWarning)
        computed = jobs[0].compute_together(cases, needed, progress)
    synchronize(cases.x.device)
    seconds, cost = time.perf_counter() - started, cases.model.queries - before
    for one in caught:  # other libraries' warnings are passed on
        if not issubclass(one.category, HoldfastWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    warned = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, HoldfastWarning))
    each = [_parts(total, len(jobs)) for total in (cost.forward, cost.gradient)]
    machine = machine_of(str(cases.x.device))
    return [
        Unit(job.kind, job.made_of(), arrays, seconds / len(jobs), forward, gradient, machine, (*notes, *warned))
        for job, (arrays, notes), forward, gradient in zip(jobs, computed, *each, strict=True)
    ]


def _parts(total: int, count: int) -> list[int]:
    """Divide a whole number into almost equal parts."""
    return [total // count + (place < total % count) for place in range(count)]


@cache
def machine_of(device: str) -> str:
    """Return the hardware behind a device and the version of torch, in words."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    return f"{processor()}, {counted(torch.get_num_threads(), 'thread')}, torch {torch.__version__}"


def processor() -> str:
    """Return the name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


_WARM: set[tuple[Any, ...]] = set()  # models, devices and shapes whose first, slow pass is over


def _warm_up(cases: Cases) -> None:
    """Keep the start of a GPU out of the cost of the first unit."""
    model = cases.model
    key = (id(model), str(cases.x.device), tuple(cases.x.shape))
    if cases.x.is_cuda and key not in _WARM and isinstance(model, DifferentiableModel):
        _WARM.add(key)
        before = model.queries
        for _ in range(3):
            model.gradient(cases.x[: model.chunk(cases.x)], lambda logits: logits[:, 0])
        model.queries = before
