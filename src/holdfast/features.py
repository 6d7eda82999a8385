"""Which coordinates of an input move together: coordinates <-> features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.errors import HoldfastError

FIXED = -1
"""The id of coordinates that belong to no feature and never move."""


@dataclass(frozen=True, eq=False)
class Features:
    """A feature id for every coordinate: ``ids [N, *shape]``, N = 1 when all cases share them.

    Axes of length one broadcast (joint colour channels share one id). ``FIXED`` coordinates never
    move; ids past the ones a case uses are padding and move nothing.

    >>> Features.pixels((1, 28, 28)).count
    784
    """

    ids: Tensor
    count: int
    kind: str = "groups"

    # ------------------------------------------------------------------ ways to make them

    @classmethod
    def pixels(cls, shape: Sequence[int], channels: Literal["joint", "separate"] = "joint") -> Features:
        """One feature a pixel of a ``(C, H, W)`` image, or one a colour value with ``channels="separate"``."""
        c, h, w = _image_shape(shape)
        if channels not in ("joint", "separate"):
            raise HoldfastError(f'channels must be "joint" or "separate", got {channels!r}.')
        depth = 1 if channels == "joint" else c
        return cls(torch.arange(depth * h * w).reshape(1, depth, h, w), depth * h * w, f"pixels ({channels} channels)")

    @classmethod
    def patches(cls, shape: Sequence[int], size: int) -> Features:
        """Squares of ``size x size`` pixels, all channels together; smaller ones at the far edges."""
        _, h, w = _image_shape(shape)
        if not 1 <= size <= max(h, w):
            raise HoldfastError(f"patch size must be between 1 and {max(h, w)} for a {h} x {w} image, got {size}.")
        across = -(-w // size)
        rows, columns = torch.arange(h) // size, torch.arange(w) // size
        ids = rows[:, None] * across + columns[None, :]
        return cls(ids.reshape(1, 1, h, w), int(ids.max()) + 1, f"patches of {size} x {size}")

    @classmethod
    def superpixels(cls, image: Any, n: int) -> Features:
        """About ``n`` SLIC segments of a ``[C, H, W]`` image, or of each image in ``[B, C, H, W]``."""
        try:
            from skimage.segmentation import slic  # an optional extra, heavy to import
        except ImportError as error:
            raise HoldfastError('superpixels need scikit-image: pip install "holdfast[superpixels]".') from error
        images = torch.as_tensor(image).detach().cpu()
        images = images[None] if images.ndim == 3 else images
        if images.ndim != 4 or not images.is_floating_point() or not bool(torch.isfinite(images).all()):
            raise HoldfastError(f"superpixels need a finite float image [C, H, W], got {tuple(images.shape)}.")
        if not 1 <= n <= prod(images.shape[2:]):
            raise HoldfastError(f"superpixels need 1 <= n <= {prod(images.shape[2:])} segments, got {n}.")
        segments = [
            torch.from_numpy(slic(one.permute(1, 2, 0).double().numpy(), n_segments=n, channel_axis=-1, start_label=0))
            for one in (images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images)  # SLIC weighs colours in Lab
        ]
        ids = torch.stack(segments)[:, None].long()
        return cls(ids, int(ids.max()) + 1, "superpixels")

    @classmethod
    def tokens(cls, attention_mask: Any, words: Any = None) -> Features:
        """One feature a token of embedded text ``[B, L, E]``; padding (mask 0) never moves.

        ``words [B, L]`` groups sub-word tokens by word; its negative entries (special tokens) never move.
        """
        mask = torch.as_tensor(attention_mask)
        if mask.ndim != 2 or not bool(((mask == 0) | (mask == 1)).all()):
            raise HoldfastError(f"attention_mask must be [B, L] of zeros and ones, got shape {tuple(mask.shape)}.")
        length = mask.shape[1]
        ids = torch.arange(length).expand_as(mask) if words is None else torch.as_tensor(words)
        if ids.shape != mask.shape or ids.is_floating_point():
            raise HoldfastError(f"words must be integers of shape {tuple(mask.shape)}, got {tuple(ids.shape)}.")
        ids = torch.where(mask.bool() & (ids >= 0), ids.long(), FIXED)
        return cls._counted(ids[:, :, None], "tokens")

    @classmethod
    def columns(cls, groups: int | Sequence[int | Sequence[int]], n: int | None = None) -> Features:
        """One feature a column of a table with ``groups`` columns, or one a group of column numbers.

        ``n`` is the width of the table when its last columns are in no group and so never move.

        >>> Features.columns([[0, 1, 2], 3]).count    # a one-hot triple and a number
        2
        """
        if isinstance(groups, int):
            groups = list(range(groups))
        lists = [[group] if isinstance(group, int) else list(group) for group in groups]
        members = [column for group in lists for column in group]
        if not members or any(not group for group in lists):
            raise HoldfastError("columns need at least one feature and at least one column in each.")
        if len(set(members)) != len(members) or min(members) < 0:
            raise HoldfastError(f"each column may be in one group and must be >= 0, got {lists}.")
        width = max(members) + 1 if n is None else n
        if width <= max(members):
            raise HoldfastError(f"column {max(members)} is past the table's n = {width} columns.")
        ids = torch.full((1, width), FIXED)
        for feature, group in enumerate(lists):
            ids[0, group] = feature
        return cls(ids, len(lists), "columns")

    @classmethod
    def of(cls, ids: Any) -> Features:
        """Features from a tensor of ids ``[*shape]`` or ``[B, *shape]``; negative ids never move."""
        ids = torch.as_tensor(ids)
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise HoldfastError(f"feature ids must be integers, got {ids.dtype}.")
        return cls._counted(ids.long().clamp_min(FIXED), "groups")

    @classmethod
    def _counted(cls, ids: Tensor, kind: str) -> Features:
        if ids.numel() == 0 or int(ids.max()) < 0:
            raise HoldfastError("there is no feature to move: every coordinate's id is negative.")
        return cls(ids, int(ids.max()) + 1, kind)

    # ------------------------------------------------------------------ ways to use them

    def bind(self, x: Tensor) -> Features:
        """These features laid over a batch ``x [B, *shape]``, on its device; refuses what does not fit."""
        ids = self.ids.to(x.device)
        ids = ids if ids.ndim == x.ndim else ids[None]
        fits = ids.ndim == x.ndim and all(i in (1, n) for i, n in zip(ids.shape, x.shape, strict=True))
        if not fits:
            raise HoldfastError(
                f"features of shape {tuple(self.ids.shape)} do not fit inputs of shape {tuple(x.shape)}: "
                "expected [*shape] or [B, *shape]."
            )
        return Features(ids, self.count, self.kind)

    def expand(self, subsets: Tensor, cases: Tensor | None = None) -> Tensor:
        """Which coordinates may move: ``subsets [R, count]`` -> bool ``[R, *shape]`` (broadcastable).

        ``cases [R]`` says whose ids each row follows; not needed when all share them.
        """
        ids = self.ids if len(self.ids) == 1 or cases is None else self.ids[cases]
        flat = ids.flatten(1).expand(len(subsets), -1)
        free = subsets.gather(1, flat.clamp_min(0)) & (flat >= 0)
        return free.reshape(len(subsets), *ids.shape[1:])

    def spread(self, values: Tensor) -> Tensor:
        """The value of its feature for every coordinate: ``[B, count]`` -> ``[B, *shape]`` (broadcastable).

        Coordinates of no feature get the value of the first.
        """
        flat = self.ids.flatten(1).expand(len(values), -1)
        return values.gather(1, flat.clamp_min(0)).reshape(len(values), *self.ids.shape[1:])

    def pool(self, values: Tensor) -> Tensor:
        """Sum of a value a coordinate over each feature: ``[B, *shape]`` -> ``[B, count]``."""
        shared = [axis for axis in range(1, values.ndim) if self.ids.shape[axis] == 1 < values.shape[axis]]
        values = values.sum(shared, keepdim=True) if shared else values  # joint channels: a third of what follows
        flat = self.ids.flatten(1).expand(len(values), -1)
        sums = values.new_zeros(len(values), self.count + 1)
        return sums.scatter_add_(1, flat + 1, values.flatten(1))[:, 1:]  # slot 0 takes the FIXED ones


def _image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape) < 1:
        raise HoldfastError(f"expected an image shape (channels, height, width), got {tuple(shape)}.")
    c, h, w = shape
    return c, h, w
