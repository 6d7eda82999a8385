"""The trials by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Protocol, cast

import trial
from trial.tally import Tally


class Trial(Protocol):
    """A module with a trial."""

    SHORT: int
    LONG: int
    trial: Callable[[int, int], Tally]


def trials() -> dict[str, Trial]:
    """Import and return the modules ``trial.*_trial`` by the beginning of their names."""
    names = [module.name for module in pkgutil.iter_modules(trial.__path__) if module.name.endswith("_trial")]
    modules = {name.removesuffix("_trial"): importlib.import_module(f"trial.{name}") for name in names}
    return {name: cast("Trial", module) for name, module in modules.items()}
