"""The command with the user's own model: a function, TorchScript, ONNX, trees, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import holdfast as hf
from holdfast.as_model import as_model
from holdfast.model_files import is_own, load_model

CODE = """
import numpy as np
import torch
import holdfast as hf

def network():
    return hf.data.mnist_cnn().module

def bounded():
    print("loading")
    return hf.TorchModel(network(), (0, 1), classes=list("abcdefghij"))

def leaves():
    raise SystemExit(3)

def empty():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)).eval()
    return net.requires_grad_(False)

def rule():
    return lambda rows: np.stack([rows[:, 1], 1 - rows[:, 1]], 1)

def broken():
    raise ValueError("no weights here")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_models.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    return tmp_path


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments], capture_output=True, text=True, cwd=folder, check=False
    )


def test_a_function_that_returns_a_network(folder: Path) -> None:
    done = command(folder, "explain", "--digit", "0", "--model", "my_models:network", "--method", "grad", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["label"] == "7"
    assert (folder / "explanation.png").stat().st_size > 5_000
    done = command(folder, "robustness", "--digit", "0", "--model", "my_models:network", "--json")
    assert done.returncode == 0, done.stderr


def test_a_function_that_returns_a_model_of_holdfast(folder: Path) -> None:
    done = command(folder, "explain", "--digit", "0", "--model", "my_models:bounded", "--method", "grad", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] == "h", "what the function prints is not part of the answer"


def test_a_function_for_rows_of_a_table(folder: Path) -> None:
    (folder / "t.csv").write_text("a,b\n" + "".join(f"{n / 7},{n % 5 / 4}\n" for n in range(20)))
    row = ("--table", "t.csv", "--row", "3", "--classes", "yes,no", "--top", "1")
    done = command(folder, "explain", *row, "--model", "my_models:rule", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["explanations"][0]["relevant"][0]["name"] == "b"


def test_weights_from_safetensors(folder: Path) -> None:
    linear = torch.nn.Linear(784, 10)
    net = torch.nn.Sequential(torch.nn.Flatten(), linear)
    save_file(net.state_dict(), folder / "w.safetensors")
    made = load_model("my_models:empty", folder / "w.safetensors")
    assert torch.equal(made[1].weight, linear.weight)
    save_file({"1.weight": torch.zeros(10, 784)}, folder / "less.safetensors")
    with pytest.raises(hf.HoldfastError, match="do not fit"):
        load_model("my_models:empty", folder / "less.safetensors")


def test_torchscript(folder: Path) -> None:
    net = hf.data.mnist_cnn().module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.trace(net, torch.rand(2, 1, 28, 28)).save(str(folder / "net.pt"))
    one = hf.explain(load_model(str(folder / "net.pt")), hf.data.mnist().x[0], method="grad")
    other = hf.explain(net, hf.data.mnist().x[0], method="grad")
    assert one.radius == pytest.approx(other.radius, rel=1e-3)


@pytest.mark.skipif(find_spec("onnxruntime") is None or find_spec("onnx") is None, reason="needs onnx, onnxruntime")
def test_onnx(folder: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3)).eval()
    torch.onnx.export(net, (torch.rand(1, 4),), str(folder / "net.onnx"), dynamo=False)
    model: Any = as_model(load_model(str(folder / "net.onnx")), bounds=(0, 1))
    x = torch.rand(5, 4)
    assert torch.allclose(model(x), net(x), atol=1e-5)


def test_known_networks_are_not_ones_own() -> None:
    names = (
        "digits",
        "imagenet",
        "torchvision:resnet18",
        "timm:resnet18",
        "huggingface:a/b",
        "trees.json",
        "a.txt",
    )
    assert [name for name in names if is_own(name)] == []
    assert is_own("a.b:c")
    assert not is_own(None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--digit", "0", "--model", "nothing_here:network"), "cannot be imported"),
        (("--digit", "0", "--model", "my_models:nothing"), "failed: AttributeError"),
        (("--digit", "0", "--model", "my_models:broken"), "failed: ValueError: no weights here"),
        (("--digit", "0", "--model", "my_models:leaves"), "failed: SystemExit"),
        (("--digit", "0", "--model", "model.pkl"), "is a pickle"),
        (("--digit", "0", "--model", "model.pt2"), "is a pickle or may hold one"),
        (("--digit", "0", "--model", "missing.pt"), "cannot read the TorchScript module missing.pt"),
        (("--digit", "5000", "--model", "my_models:network"), "between 0 and"),
        (("--model", "my_models:network"), "name one of"),
        (("--digit", "0", "--weights", "w.safetensors"), "--weights are for"),
        (("--digit", "0", "--model", "my_models:network", "--weights", "w.pth"), r"must be a .safetensors file"),
        (("--digit", "0", "--model", "my_models:network", "--classes", "a,b"), "2 classes are named"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = command(folder, "explain", *arguments, "--method", "grad")
    assert done.returncode == 2, done.stdout
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    shutil.rmtree(folder)
