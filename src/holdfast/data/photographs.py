"""Photographs as inputs: any file a camera or the web may hand over, cut to the square a network reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from holdfast.errors import HoldfastError

_MOST_PIXELS = 100_000_000  # a file that claims more is refused before it fills the memory
_SMALLEST = 64  # pixels a side from which an image is looked at as a photograph
_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


@dataclass(frozen=True, eq=False)
class Photos:
    """Images ``x [N, 3, size, size]`` in [0, 1], their files' names, and their classes ``y [N]``, -1 if not known."""

    x: Tensor
    names: tuple[str, ...]
    y: Tensor

    def __len__(self) -> int:
        return len(self.names)


def is_photograph(shape: Sequence[int]) -> bool:
    """Whether inputs of that shape are pictures with colours, large enough to recognise things in."""
    return len(shape) == 3 and shape[0] == 3 and min(shape[1:]) >= _SMALLEST


def read_photo(path: str | Path, size: int = 224, *, crop: float = 0.875) -> Tensor:
    """One file as ``[3, size, size]`` in [0, 1]: turned upright, colours made RGB, the middle of it, scaled.

    ``crop`` is the share of the shorter side that is kept, as networks are tested with. Transparent parts become white.
    """
    if size < 1 or not 0 < crop <= 1:
        raise HoldfastError(f"a photograph needs size >= 1 and 0 < crop <= 1, got {size} and {crop}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is below
            with Image.open(path) as file:
                if file.width * file.height > _MOST_PIXELS:
                    raise HoldfastError(
                        f"{path} claims {file.width} x {file.height} pixels, more than the {_MOST_PIXELS:,} that are "
                        "read: scale it down first."
                    )
                picture = _flat(ImageOps.exif_transpose(file))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise HoldfastError(f"cannot read the image {path}: {error}.") from error
    side = crop * min(picture.size)
    left, top = ((length - side) / 2 for length in picture.size)
    box = (left, top, left + side, top + side)
    picture = picture.resize((size, size), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(size, size, 3)
    return pixels.permute(2, 0, 1).float().div_(255).contiguous()


def _flat(picture: Image.Image) -> Image.Image:
    """RGB whatever it was: grey, palette, CMYK, 16 bits, with alpha (laid on white)."""
    if picture.mode in ("I;16", "I;16B", "I;16L", "I"):
        picture = picture.point(lambda value: value / 256).convert("L")
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(paper, picture)
    return picture.convert("RGB")


def image_folder(root: str | Path, size: int = 224, *, limit: int | None = None, crop: float = 0.875) -> Photos:
    """Photographs in folders named by class, as ImageNet's validation set is laid out; classes in the order of names.

    Files that lie in ``root`` itself have no class. ``limit`` takes the first so many, going round the classes;
    ``size`` and ``crop`` are those of ``read_photo``.
    """
    root = Path(root)
    if not root.is_dir():
        raise HoldfastError(f"there is no folder {root}.")
    classes = sorted(path.name for path in root.iterdir() if path.is_dir())
    found = [*_one_of_each([_photos_in(root / name) for name in classes]), *_photos_in(root)]
    if not found:
        raise HoldfastError(f"{root} has no photographs ({', '.join(_KINDS)}), nor folders of them.")
    chosen = found[:limit]
    place = {name: number for number, name in enumerate(classes)}
    labels = torch.tensor([place.get(path.parent.name, -1) if path.parent != root else -1 for path in chosen])
    return Photos(
        torch.stack([read_photo(path, size, crop=crop) for path in chosen]),
        tuple(str(path.relative_to(root)) for path in chosen),
        labels,
    )


def _photos_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in _KINDS)


def _one_of_each(folders: list[list[Path]]) -> Iterator[Path]:
    for turn in range(max(map(len, folders), default=0)):
        yield from (folder[turn] for folder in folders if turn < len(folder))
