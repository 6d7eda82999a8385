"""Features: which coordinates of an input move together, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.errors import HoldfastError, unknown_name
from holdfast.feature_shapes import read_groups, read_image_shape
from holdfast.settings import Count, read_setting, shown_value
from holdfast.tensors import read_tensor

FIXED = -1
"""The id of coordinates that belong to no feature and never move."""


@dataclass(frozen=True, eq=False)
class Features:
    """A feature id for every coordinate of an input.

    Axes of length one broadcast: colour channels that move together share one id. Coordinates with the id ``FIXED``
    never move. Ids beyond those that a case uses are padding and move nothing.

    >>> Features.pixels((1, 28, 28)).count
    784
    >>> Features.columns(2, names=["age", "income"]).name(1)
    'income'

    Attributes:
        ids: Integers ``[N, *shape]``; N is 1 if all cases share them.
        count: The number of features, d.
        kind: What the features are, for messages and reports.
        names: Names of the features: one tuple for each row of ``ids``, or a flat sequence if all cases share them.
            None: each feature is called by its kind and number.
    """

    ids: Tensor
    count: int
    kind: str = "groups"
    names: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", read_tensor(self.ids, "feature ids", "integers [N, *shape]"))
        object.__setattr__(self, "count", read_setting(self.count, Count, "count"))
        if self.ids.is_floating_point() or self.ids.dtype == torch.bool or not self.ids.numel():
            raise HoldfastError(f"feature ids must be integers, got {self.ids.dtype} of {tuple(self.ids.shape)}.")
        if self.names is None:
            return
        if not isinstance(self.names, (list, tuple)) or not all(isinstance(one, (str, Sequence)) for one in self.names):
            raise HoldfastError(f"names must be texts, one for each feature, got {shown_value(self.names)}.")
        flat = all(isinstance(one, str) for one in self.names)
        names = (tuple(map(str, self.names)),) if flat else tuple(tuple(map(str, one)) for one in self.names)
        if len(names) != 1 and len(names) != len(self.ids):
            raise HoldfastError(f"names are given for {len(names)} cases, the features are of {len(self.ids)}.")
        wrong = next((len(one) for one in names if len(one) > self.count or (flat and len(one) != self.count)), None)
        if wrong is not None:
            raise HoldfastError(f"{wrong} names are given for {self.count} features.")
        object.__setattr__(self, "names", names)

    # ------------------------------------------------------------------ making features

    @classmethod
    def parse(cls, text: str, x: Tensor) -> Features:
        """Make image features from text: ``pixels``, ``patches:16`` or ``superpixels:50``.

        Args:
            text: The kind of features, followed by ``:`` and the side of a patch or the number of superpixels.
            x: The inputs ``[B, C, H, W]`` that the features are for.

        Returns:
            The features.

        Raises:
            HoldfastError: The text is not one of these, or does not fit the inputs.
        """
        kind, _, size = read_setting(text, str, "features").partition(":")
        shape = tuple(x.shape[1:])
        if kind == "pixels" and not size:
            return cls.pixels(shape)
        if kind in ("patches", "superpixels") and size.isdecimal() and len(size) < 9:
            return cls.patches(shape, int(size)) if kind == "patches" else cls.superpixels(x, int(size))
        raise HoldfastError(f"features must be pixels, patches:N or superpixels:N, got {text!r}.")

    @classmethod
    def pixels(cls, shape: Sequence[int], channels: Literal["joint", "separate"] = "joint") -> Features:
        """Pixels of an image of shape ``(C, H, W)``.

        Args:
            shape: Channels, height and width.
            channels: ``"joint"``: the colours of a pixel move together. ``"separate"``: each is a feature.

        Returns:
            One feature for each pixel, or for each colour value.
        """
        c, h, w = read_image_shape(shape)
        if channels not in ("joint", "separate"):
            raise HoldfastError(f'channels must be "joint" or "separate", got {channels!r}.')
        depth = 1 if channels == "joint" else c
        kind = "pixels" if c == 1 else f"pixels ({channels} channels)"
        return cls(torch.arange(depth * h * w).reshape(1, depth, h, w), depth * h * w, kind)

    @classmethod
    def patches(cls, shape: Sequence[int], size: int) -> Features:
        """Square patches of an image of shape ``(C, H, W)``; those at the far edges may be smaller.

        Args:
            shape: Channels, height and width.
            size: Pixels along the side of a patch.

        Returns:
            One feature for each patch, all channels together.
        """
        _, h, w = read_image_shape(shape)
        size = read_setting(size, Count, "patch size")
        if not 1 <= size <= max(h, w):
            raise HoldfastError(f"patch size must be between 1 and {max(h, w)} for a {h} x {w} image, got {size}.")
        across = -(-w // size)
        rows, columns = torch.arange(h) // size, torch.arange(w) // size
        ids = rows[:, None] * across + columns[None, :]
        return cls(ids.reshape(1, 1, h, w), int(ids.max()) + 1, f"patches of {size} x {size}")

    @classmethod
    def superpixels(cls, image: Any, n: int) -> Features:
        """SLIC segments of an image.

        Args:
            image: One image ``[C, H, W]``, or several ``[B, C, H, W]`` that are segmented one by one.
            n: About how many segments an image is cut into.

        Returns:
            One feature for each segment.

        Raises:
            HoldfastError: scikit-image is not installed, or the image is not a finite float image.
        """
        try:
            from skimage.segmentation import slic  # an optional extra, heavy to import
        except ImportError as error:
            raise HoldfastError('superpixels require scikit-image: pip install "holdfast[superpixels]".') from error
        images = read_tensor(image, "the image", "a float image [C, H, W]").cpu()
        n = read_setting(n, Count, "the number of segments")
        images = images[None] if images.ndim == 3 else images
        if images.ndim != 4 or not images.is_floating_point() or not bool(torch.isfinite(images).all()):
            raise HoldfastError(f"superpixels need a finite float image [C, H, W], got {tuple(images.shape)}.")
        if not 1 <= n <= prod(images.shape[2:]):
            raise HoldfastError(f"superpixels need 1 <= n <= {prod(images.shape[2:])} segments, got {n}.")
        segments = [
            torch.from_numpy(slic(one.permute(1, 2, 0).double().numpy(), n_segments=n, channel_axis=-1, start_label=0))
            for one in (
                images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
            )  # SLIC compares colours in Lab
        ]
        ids = torch.stack(segments)[:, None].long()
        return cls(ids, int(ids.max()) + 1, "superpixels")

    @classmethod
    def tokens(cls, attention_mask: Any, words: Any = None) -> Features:
        """Tokens of embedded text ``[B, L, E]``.

        Args:
            attention_mask: ``[B, L]`` of ones and zeros; tokens with 0 are padding and never move.
            words: ``[B, L]``: the number of the word that each token belongs to, so that its tokens move together.
                Tokens with a negative number, such as special tokens, never move.

        Returns:
            One feature for each token or word.
        """
        mask = read_tensor(attention_mask, "attention_mask", "[B, L] of zeros and ones")
        if mask.ndim != 2 or not bool(((mask == 0) | (mask == 1)).all()):
            raise HoldfastError(f"attention_mask must be [B, L] of zeros and ones, got shape {tuple(mask.shape)}.")
        length = mask.shape[1]
        ids = torch.arange(length).expand_as(mask) if words is None else read_tensor(words, "words", "integers [B, L]")
        if ids.shape != mask.shape or ids.is_floating_point():
            raise HoldfastError(f"words must be integers of shape {tuple(mask.shape)}, got {tuple(ids.shape)}.")
        ids = torch.where(mask.bool() & (ids >= 0), ids.long(), FIXED)
        return cls._counted(ids[:, :, None], "tokens")

    @classmethod
    def columns(
        cls, groups: int | Sequence[int | Sequence[int]], n: int | None = None, names: Sequence[str] | None = None
    ) -> Features:
        """Columns of a table, or groups of columns that move together.

        >>> Features.columns([[0, 1, 2], 3]).count    # a one-hot triple and a number
        2

        Args:
            groups: The number of columns, or for each feature its column number or numbers.
            n: The width of the table, if its last columns are in no group and so never move.
            names: Names of the features, as many as there are groups.

        Returns:
            One feature for each column or group.

        Raises:
            HoldfastError: A group is empty, a column is used twice, or names and groups differ in number.
        """
        n = read_setting(n, Count | None, "n")
        lists = read_groups(groups)
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
        return cls(ids, len(lists), "columns", names)  # type: ignore[arg-type]  # checked when made

    @classmethod
    def of(cls, ids: Any) -> Features:
        """Make features from ids.

        Args:
            ids: Integers ``[*shape]`` or ``[B, *shape]``; coordinates with a negative id never move.

        Returns:
            One feature for each id from 0 to the largest.
        """
        ids = read_tensor(ids, "feature ids", "integers")
        if ids.is_floating_point() or ids.dtype == torch.bool:
            raise HoldfastError(f"feature ids must be integers, got {ids.dtype}.")
        return cls._counted(ids.long().clamp_min(FIXED), "groups")

    @classmethod
    def _counted(cls, ids: Tensor, kind: str) -> Features:
        if ids.numel() == 0 or int(ids.max()) < 0:
            raise HoldfastError("there is no feature to move: every coordinate's id is negative.")
        return cls(ids, int(ids.max()) + 1, kind)

    # ------------------------------------------------------------------ using features

    def bind(self, x: Tensor) -> Features:
        """Fit these features to a batch.

        Args:
            x: Inputs ``[B, *shape]``.

        Returns:
            The features on the device of ``x``, with ids ``[1 or B, *shape]``.

        Raises:
            HoldfastError: The shapes do not fit.
        """
        ids = self.ids.to(x.device)
        ids = ids if ids.ndim == x.ndim else ids[None]
        fits = ids.ndim == x.ndim and all(i in (1, n) for i, n in zip(ids.shape, x.shape, strict=True))
        if not fits:
            raise HoldfastError(
                f"features of shape {tuple(self.ids.shape)} do not fit inputs of shape {tuple(x.shape)}: "
                "expected [*shape] or [B, *shape]."
            )
        if int(self.ids.max()) >= self.count:
            raise HoldfastError(f"count must be over the largest feature id {int(self.ids.max())}, got {self.count}.")
        return replace(self, ids=ids)

    def at(self, which: slice | Tensor) -> Features:
        """Return the features of some cases, by slice, index or mask; shared features stay as they are."""
        if len(self.ids) == 1:
            return self
        names = self.names
        if names is not None and len(names) > 1:
            rows = (
                range(len(names))[which] if isinstance(which, slice) else torch.arange(len(names))[which.cpu()].tolist()
            )
            names = tuple(names[row] for row in rows)
        return replace(self, ids=self.ids[which], names=names)

    def name(self, feature: int, case: int = 0) -> str:
        """Return the name of a feature.

        Args:
            feature: The number of the feature.
            case: The index of the case, if features have other names in each case.

        Returns:
            Its name; without one, its kind and number.
        """
        names = () if self.names is None else self.names[case if len(self.names) > 1 else 0]
        return names[feature] if feature < len(names) else f"{self._noun} {feature}"

    def number(self, name: str, case: int = 0) -> int:
        """Return the number of a feature.

        Args:
            name: Its name, as ``Features.name`` returns it.
            case: The index of the case, if features have other names in each case.

        Raises:
            HoldfastError: No feature has this name; the nearest one is suggested.
        """
        known = [self.name(feature, case) for feature in range(self.count)]
        if name not in known:
            raise unknown_name("feature", name, known, most=20)
        return known.index(name)

    @property
    def _noun(self) -> str:
        return self.kind.split()[0].removesuffix("s").removesuffix("e" if self.kind.startswith("patches") else "")

    def expand(self, subsets: Tensor, cases: Tensor | None = None) -> Tensor:
        """Turn subsets of features into masks of coordinates.

        Args:
            subsets: Bool ``[R, d]``.
            cases: ``[R]``: the case whose ids each row follows; not needed if all cases share them.

        Returns:
            Bool ``[R, *shape]``, broadcastable to inputs.
        """
        ids = self.ids if len(self.ids) == 1 or cases is None else self.ids[cases]
        flat = ids.flatten(1).expand(len(subsets), -1)
        free = subsets.gather(1, flat.clamp_min(0)) & (flat >= 0)
        return free.reshape(len(subsets), *ids.shape[1:])

    def spread(self, values: Tensor) -> Tensor:
        """Give every coordinate the value of its feature.

        Args:
            values: ``[B, d]``.

        Returns:
            ``[B, *shape]``, broadcastable to inputs. Coordinates of no feature get the value of the first.
        """
        flat = self.ids.flatten(1).expand(len(values), -1)
        return values.gather(1, flat.clamp_min(0)).reshape(len(values), *self.ids.shape[1:])

    def pool(self, values: Tensor) -> Tensor:
        """Sum a value of every coordinate over each feature.

        Args:
            values: ``[B, *shape]``.

        Returns:
            ``[B, d]``.
        """
        shared = [axis for axis in range(1, values.ndim) if self.ids.shape[axis] == 1 < values.shape[axis]]
        values = values.sum(shared, keepdim=True) if shared else values  # joint channels: a third of the work below
        flat = self.ids.flatten(1).expand(len(values), -1)
        sums = values.new_zeros(len(values), self.count + 1)
        return sums.scatter_add_(1, flat + 1, values.flatten(1))[:, 1:]  # slot 0 takes the FIXED ones
