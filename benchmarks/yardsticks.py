"""Published minimum-norm attacks, held to a mask: foolbox and adv-lib where they can be imported.

The attack of Brendel and Bethge in foolbox also needs numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.models.model import Queries
from holdfast.models.torch import layers_of
from holdfast.robustness import Rows

Attack = Callable[[Rows], Tensor]


class Masked(nn.Module):
    """A network that sees the row's own x wherever the row may not move, so an attack gains nothing off its mask."""

    def __init__(self, rows: Rows):
        super().__init__()
        self.rows = rows

    def forward(self, inputs: Tensor) -> Tensor:
        rows = self.rows
        moved = torch.where(rows.free, inputs.flatten(1), rows.x).reshape(inputs.shape)
        rows.model.queries += Queries(forward=len(rows), gradient=len(rows) * torch.is_grad_enabled())
        logits: Tensor = layers_of(rows.model).module(moved)
        return logits


def yardsticks(p: float, steps: int = 1000) -> dict[str, Attack]:
    """Name -> attack giving a move ``[R, n]``; empty where neither library is installed."""
    return _foolbox(p, steps) | _adv_lib(p, steps)


def _foolbox(p: float, steps: int) -> dict[str, Attack]:
    try:
        import foolbox
    except ImportError:
        return {}
    kinds = {
        2.0: {"DDN": foolbox.attacks.DDNAttack(steps=steps), "FMN": foolbox.attacks.L2FMNAttack(steps=steps)},
        math.inf: {"FMN": foolbox.attacks.LInfFMNAttack(steps=steps)},
        1.0: {"FMN": foolbox.attacks.L1FMNAttack(steps=steps), "EAD": foolbox.attacks.EADAttack(steps=steps // 9)},
    }[p]

    def run(attack: Any) -> Attack:
        def attacked(rows: Rows) -> Tensor:
            model = foolbox.PyTorchModel(Masked(rows).eval(), bounds=(0, 1), device=rows.x.device)
            clipped: Tensor = attack(model, rows.x.reshape(-1, *rows.shape), rows.label, epsilons=None)[1]
            return (clipped.flatten(1) - rows.x) * rows.free

        return attacked

    def walk(attack: Any, begin: Attack) -> Attack:
        def attacked(rows: Rows) -> Tensor:
            delta = begin(rows)
            found = rows.changed(rows.model(rows.points(delta)))
            if not bool(found.any()):
                return delta
            part = rows.at(found)
            model = foolbox.PyTorchModel(Masked(part).eval(), bounds=(0, 1), device=rows.x.device)
            points, x = part.points(delta[found]), part.x.reshape(-1, *part.shape)
            walked = (attack.run(model, x, part.label, starting_points=points).flatten(1) - part.x) * part.free
            kept = part.changed(part.model(part.points(walked)))
            delta[found] = torch.where(kept[:, None], walked, delta[found])
            return delta

        return attacked

    attacks = {f"foolbox {name}, {steps} steps": run(attack) for name, attack in kinds.items()}
    if find_spec("numba") is None:  # which the next attack needs
        return attacks
    brendel_bethge = {
        2.0: foolbox.attacks.L2BrendelBethgeAttack,
        math.inf: foolbox.attacks.LinfinityBrendelBethgeAttack,
        1.0: foolbox.attacks.L1BrendelBethgeAttack,
    }[p]
    first = next(iter(attacks.values()))
    return attacks | {f"foolbox BB from the first, {steps} steps": walk(brendel_bethge(steps=steps), first)}


def _adv_lib(p: float, steps: int) -> dict[str, Attack]:
    try:
        from adv_lib import attacks
    except ImportError:
        return {}
    kinds: dict[str, Callable[..., Tensor]] = {
        "FMN": lambda net, x, y: attacks.fmn(net, x, y, norm=p, steps=steps),
    }
    if p in (1, 2):
        distance = {1.0: "l1", 2.0: "l2"}[p]
        kinds["ALMA"] = lambda net, x, y: attacks.alma(net, x, y, distance=distance, num_steps=steps)
    kinds["PDPGD"] = lambda net, x, y: attacks.pdpgd(net, x, y, norm=p, num_steps=steps)
    if p == 2:
        kinds["DDN"] = lambda net, x, y: attacks.ddn(net, x, y, steps=steps, levels=None)

    def run(attack: Callable[..., Tensor]) -> Attack:
        def attacked(rows: Rows) -> Tensor:
            moved = attack(Masked(rows).eval(), rows.x.reshape(-1, *rows.shape), rows.label)
            return (moved.detach().flatten(1) - rows.x) * rows.free

        return attacked

    return {f"adv-lib {name}, {steps} steps": run(attack) for name, attack in kinds.items()}
