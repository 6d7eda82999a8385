from __future__ import annotations

import functools
import gzip
import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import holdfast as hf
from holdfast.data import mnist as module_function
from holdfast.data import train
from holdfast.data.idx import read_idx, write_idx
from holdfast.data.networks import mnist_cnn
from studies import checksums_of

CHECKSUMS = "holdfast.data.digits._CHECKSUM"


def test_embedded_digits(digits: hf.data.Digits) -> None:
    assert digits.x.shape == (1000, 1, 28, 28)
    assert (float(digits.x.min()), float(digits.x.max())) == (0.0, 1.0)
    assert torch.bincount(digits.y).tolist() == [85, 126, 116, 107, 110, 87, 87, 99, 89, 94]


def test_embedded_network_is_good(digits: hf.data.Digits, digit_model: hf.TorchModel) -> None:
    right = (digit_model(digits.x).argmax(1) == digits.y).float().mean()
    assert float(right) >= 0.99
    assert not any(p.requires_grad for p in digit_model.module.parameters())


@pytest.fixture
def small(idx_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a handful of digits, known by their own checksums."""
    monkeypatch.setattr(CHECKSUMS, checksums_of(idx_folder))
    return idx_folder


@pytest.fixture
def server(small: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(small))) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()
        thread.join()


def test_reads_plain_and_compressed_idx(small: Path, tmp_path: Path) -> None:
    compressed = module_function(small, split="train")
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in small.glob("*.gz"):
        (plain / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    again = module_function(plain, split="train")
    assert torch.equal(compressed.x, again.x)
    assert torch.equal(compressed.y, torch.arange(300) % 10)


def test_downloads_once_and_checks(server: str, small: Path, tmp_path: Path) -> None:
    root = tmp_path / "new" / "folder"
    fetched = module_function(root, download=True, mirror=server)
    assert len(fetched) == 300
    assert sorted(path.name for path in root.iterdir()) == ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    for path in small.iterdir():
        path.unlink()
    assert torch.equal(module_function(root, download=True, mirror=server).x, fetched.x)


def test_a_wrong_file_is_not_kept(server: str, small: Path, tmp_path: Path) -> None:
    write_idx(small / "t10k-images-idx3-ubyte.gz", torch.zeros(300, 28, 28))
    with pytest.raises(hf.HoldfastError, match="wrong checksum"):
        module_function(tmp_path / "root", download=True, mirror=server)
    assert list((tmp_path / "root").iterdir()) == []


def test_a_mirror_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match="cannot download"):
        module_function(tmp_path, download=True, mirror="http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "not an idx file"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01", "unsigned bytes"),
        (b"\x00\x00\x08\x03\x00\x00", "cut short"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x09abc", "wrong length"),
        (b"\x1f\x8bbroken", "cannot read"),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(content)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"\x00\x00\x08\x01\x00\x00\x00\x00")
    with pytest.raises(hf.HoldfastError, match=message):
        module_function(tmp_path)


def test_missing_files_and_splits(tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match="pass download=True"):
        module_function(tmp_path)
    with pytest.raises(hf.HoldfastError, match="name a root folder"):
        module_function(split="train")
    with pytest.raises(hf.HoldfastError, match="split must be"):
        module_function(split="validation")  # type: ignore[arg-type]  # wrong on purpose


def test_idx_round_trip(tmp_path: Path) -> None:
    values = torch.randint(0, 256, (4, 3, 2))
    write_idx(tmp_path / "values.gz", values)
    assert torch.equal(read_idx(tmp_path / "values.gz"), values.to(torch.uint8))


def test_training_writes_weights_that_load(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "weights.safetensors"
    seen: list[int] = []
    training, test = module_function(small, split="train"), module_function(small)
    accuracy = train.train_cnn(training, test, out, epochs=1, progress=lambda done, total, share: seen.append(done))
    assert 0 <= accuracy <= 1
    assert seen == [1]
    network = mnist_cnn()
    network.load_state_dict(load_file(out))
    assert train.measure_accuracy(network, module_function(small)) == accuracy
