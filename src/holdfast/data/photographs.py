"""Photographs as inputs: image files, cropped and scaled to the square that a network reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from holdfast.errors import HoldfastError
from holdfast.files import MEGABYTE, reading, shown

MOST_PIXELS = 64_000_000  # a file that claims more is refused before it fills the memory
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # others start programs or hide their size
_LARGEST = 512 * MEGABYTE  # bytes of an image file
_STRIP = 256  # rows of pixels
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


@dataclass(frozen=True, eq=False)
class Photos:
    """Photographs and their classes.

    Attributes:
        x: Images ``[N, 3, size, size]`` with values from 0 to 1.
        names: The names of their files.
        y: Their classes ``[N]``; -1 if unknown.
    """

    x: Tensor
    names: tuple[str, ...]
    y: Tensor

    def __len__(self) -> int:
        return len(self.names)


def read_photo(path: str | Path, size: int = 224, *, crop: float = 0.875) -> Tensor:
    """Read an image file: turn it upright, convert it to RGB, crop its middle and scale it.

    Transparent pixels become white.

    Args:
        path: The file: BMP, GIF, JPEG, PNG, PPM, TIFF or WebP.
        size: Pixels a side of the result.
        crop: Share of the shorter side that is kept. Networks are usually tested with 0.875.

    Returns:
        The image ``[3, size, size]`` with values from 0 to 1.

    Raises:
        HoldfastError: An argument is out of range, or the file cannot be read or has too many pixels.
    """
    if size < 1 or not 0 < crop <= 1:
        raise HoldfastError(f"a photograph needs size >= 1 and 0 < crop <= 1, got {size} and {crop}.")
    with opened_image(path) as file:
        picture = rgb(file)
    side = crop * min(picture.size)
    left, top = ((length - side) / 2 for length in picture.size)
    box = (left, top, left + side, top + side)
    picture = picture.resize((size, size), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(size, size, 3)
    return pixels.permute(2, 0, 1).float().div_(255).contiguous()


@contextmanager
def opened_image(path: str | Path) -> Iterator[Image.Image]:
    """Open an image file whose size has been checked. What the block raises becomes one sentence.

    Args:
        path: The file, in one of ``FORMATS``.

    Yields:
        The image. Its pixels are read when they are used.

    Raises:
        HoldfastError: The file cannot be read, or has too many pixels.
    """
    with reading(path, "the image", _LARGEST), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damage that does not matter, and about sizes: our own limit is below
        with Path(path).open("rb") as opened, _begun(opened) as file:  # Pillow may leave its own open
            most = MOST_PIXELS // 2 if file.format == "WEBP" else MOST_PIXELS  # its decoder holds four copies
            if file.width * file.height > most:
                raise HoldfastError(
                    f"{shown(path)} claims {file.width} x {file.height} pixels, more than the {most:,} that are read: "
                    "scale it down first."
                )
            yield file


def _begun(opened: IO[bytes]) -> Image.Image:
    try:
        return Image.open(opened, formats=FORMATS)
    except UnidentifiedImageError as error:  # its message shows the file as an object
        raise HoldfastError(f"it should be a picture in one of the formats {', '.join(FORMATS)}.") from error


def rgb(picture: Image.Image) -> Image.Image:
    """Return a picture of any mode (grey, palette, CMYK, 16 bits, with alpha) upright, as RGB on white."""
    ImageOps.exif_transpose(picture, in_place=True)  # without a copy: a photograph may take 256 MB
    if picture.mode in ("I;16", "I;16B", "I;16L", "I"):
        picture = picture.point(lambda value: value / 256).convert("L")
    if "A" in picture.getbands() or "transparency" in picture.info:
        return _on_white(picture)
    return picture.convert("RGB")


def _on_white(picture: Image.Image) -> Image.Image:
    """Return a picture with transparent pixels as RGB on white, strip by strip: whole copies would fill the memory."""
    flat = Image.new("RGB", picture.size)
    for top in range(0, picture.height, _STRIP):
        strip = picture.crop((0, top, picture.width, min(top + _STRIP, picture.height))).convert("RGBA")
        flat.paste(Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip).convert("RGB"), (0, top))
    return flat


def image_folder(root: str | Path, size: int = 224, *, limit: int | None = None, crop: float = 0.875) -> Photos:
    """Read photographs from a folder with one folder for each class, such as the validation set of ImageNet.

    Photographs come in turn: the first of every class, the second of every class, and so on. Those in ``root`` itself
    have no class and come last.

    Args:
        root: The folder. Classes are numbered by the alphabetical order of its folders.
        size: Pixels a side, as for ``read_photo``.
        limit: Read at most this many. None: all of them.
        crop: Share of the shorter side that is kept, as for ``read_photo``.

    Returns:
        The photographs. Their names are paths relative to ``root``.

    Raises:
        HoldfastError: There is no such folder, it has no photographs, or one cannot be read.
    """
    root = Path(root)
    with reading(root):
        if not root.is_dir():
            raise HoldfastError(f"there is no folder {shown(root)}.")
        classes = sorted(path.name for path in root.iterdir() if path.is_dir())
        paths = [*_in_turn([_photos_in(root / name) for name in classes]), *_photos_in(root)]
    if not paths:
        raise HoldfastError(f"{root} has no photographs ({', '.join(_SUFFIXES)}), nor folders of them.")
    chosen = paths[:limit]
    number = {name: place for place, name in enumerate(classes)}
    labels = torch.tensor([number.get(path.parent.name, -1) if path.parent != root else -1 for path in chosen])
    return Photos(
        torch.stack([read_photo(path, size, crop=crop) for path in chosen]),
        tuple(str(path.relative_to(root)) for path in chosen),
        labels,
    )


def _photos_in(folder: Path) -> list[Path]:
    """Return the image files in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in _SUFFIXES)


def _in_turn(folders: list[list[Path]]) -> Iterator[Path]:
    """Yield the first file of each folder, then the second of each, and so on."""
    for turn in range(max(map(len, folders), default=0)):
        yield from (folder[turn] for folder in folders if turn < len(folder))
