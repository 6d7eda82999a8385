from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import holdfast as hf
from holdfast.data.photographs import image_folder, read_photo


def _gradient(width: int, height: int) -> np.ndarray:
    """Red rises to the right, green downwards."""
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return np.stack([across, down, np.zeros_like(down)], 2).astype(np.uint8)


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "bmp"])
@pytest.mark.parametrize(("width", "height"), [(64, 64), (90, 50), (31, 77)])
def test_any_kind_and_shape_becomes_the_middle_square(tmp_path: Path, kind: str, width: int, height: int) -> None:
    path = tmp_path / f"photo.{kind}"
    Image.fromarray(_gradient(width, height)).save(path)
    x = read_photo(path, 32)
    assert x.shape == (3, 32, 32)
    assert x.dtype == torch.float32
    assert 0 <= float(x.min()) <= float(x.max()) <= 1
    middle = x[:, 12:20, 12:20].mean((1, 2))
    torch.testing.assert_close(middle, torch.tensor([0.5, 0.5, 0.0]), atol=0.04, rtol=0)
    assert float(x[0, :, -1].mean()) > float(x[0, :, 0].mean()) + 0.2, "left is left"
    kept = 0.875 * min(width, height) / width
    assert float(x[0, :, -1].mean() - x[0, :, 0].mean()) == pytest.approx(kept, abs=0.08)


def test_a_turned_photograph_is_put_upright(tmp_path: Path) -> None:
    upright = Image.fromarray(_gradient(60, 40))
    upright.save(tmp_path / "upright.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 270 degrees to view
    upright.rotate(90, expand=True).save(tmp_path / "turned.png", exif=exif)
    torch.testing.assert_close(read_photo(tmp_path / "turned.png", 20), read_photo(tmp_path / "upright.png", 20))


def test_grey_palette_alpha_and_sixteen_bits(tmp_path: Path) -> None:
    grey = np.full((20, 20), 128, dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey).convert("P").save(tmp_path / "palette.png")
    Image.fromarray(grey.astype(np.uint16) * 256).save(tmp_path / "deep.png")
    Image.fromarray(grey).convert("CMYK").save(tmp_path / "ink.jpg")
    for name in ("grey.png", "palette.png", "deep.png", "ink.jpg"):
        torch.testing.assert_close(read_photo(tmp_path / name, 4), torch.full((3, 4, 4), 128 / 255), atol=0.02, rtol=0)
    clear = np.zeros((20, 20, 4), dtype=np.uint8)
    Image.fromarray(clear).save(tmp_path / "clear.png")
    assert bool((read_photo(tmp_path / "clear.png", 4) == 1).all()), "nothing is white, not black"


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "photo.jpg"
    with pytest.raises(hf.HoldfastError, match="cannot read the image"):
        read_photo(path)
    path.write_bytes(b"not a picture")
    with pytest.raises(hf.HoldfastError, match=r"cannot read the image \S+photo\.jpg: [^<]* formats BMP, .*, WEBP\.$"):
        read_photo(path)
    Image.fromarray(_gradient(20, 20)).save(tmp_path / "other.tga")
    with pytest.raises(hf.HoldfastError, match=r"other\.tga: it should be a picture in one of the formats BMP"):
        read_photo(tmp_path / "other.tga")
    Image.fromarray(_gradient(200, 200)).save(path)
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(hf.HoldfastError, match="cannot read the image"):
        read_photo(path)
    Image.fromarray(_gradient(50, 50)).save(tmp_path / "large.png")
    monkeypatch.setattr("holdfast.data.photographs.MOST_PIXELS", 2000)
    with pytest.raises(hf.HoldfastError, match=r"^\S+large\.png claims 50 x 50 pixels, more than the 2,000 that"):
        read_photo(tmp_path / "large.png")
    with pytest.raises(hf.HoldfastError, match="needs size >= 1"):
        read_photo(tmp_path / "large.png", 0)


def test_a_folder_of_folders_goes_round_the_classes(tmp_path: Path) -> None:
    for name, count in (("n02", 2), ("n01", 3), ("empty", 0)):
        (tmp_path / name).mkdir()
        for number in range(count):
            Image.fromarray(_gradient(30, 30)).save(tmp_path / name / f"{number}.jpg")
    (tmp_path / "n01" / "notes.txt").write_text("not a photograph")
    Image.fromarray(_gradient(30, 30)).save(tmp_path / "loose.png")
    photos = image_folder(tmp_path, 16)
    assert photos.names == ("n01/0.jpg", "n02/0.jpg", "n01/1.jpg", "n02/1.jpg", "n01/2.jpg", "loose.png")
    assert photos.y.tolist() == [1, 2, 1, 2, 1, -1]
    assert photos.x.shape == (6, 3, 16, 16)
    assert len(image_folder(tmp_path, 16, limit=2)) == 2
    (tmp_path / "none").mkdir()
    with pytest.raises(hf.HoldfastError, match="has no photographs"):
        image_folder(tmp_path / "none")
    with pytest.raises(hf.HoldfastError, match="there is no folder"):
        image_folder(tmp_path / "nowhere")
