"""A sentence classifier that works out of the box: ten topics, a bidirectional LSTM on GloVe's vectors."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from holdfast.data.texts import Texts
from holdfast.data.train_text import LONGEST
from holdfast.errors import HoldfastError
from holdfast.text import BiLstm, TextModel, Vocabulary, WordReader

_CPU_CHUNK = 64  # rows at a time: more than an image network takes, as an LSTM has a step of its own for every word


def topics_bilstm(device: torch.device | str = "cpu") -> TextModel:
    """The embedded network of ten topics (see its model card for how it was trained and what it reaches)."""
    with as_file(files("holdfast.data") / "files" / "topics-bilstm.safetensors") as path:
        return load_bilstm(path, device)


def load_bilstm(path: str | Path, device: torch.device | str = "cpu") -> TextModel:
    """What ``holdfast train text-bilstm`` wrote: words, vectors and weights in one file; nothing in it is executed."""
    try:
        with safe_open(path, "pt") as file:
            about = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118  # it is no dict
        classes, words = json.loads(about["classes"]), tuple(about["words"].split("\n"))
        vocabulary = Vocabulary(words, tensors.pop("vectors"))
        network = BiLstm(vocabulary.vectors.shape[1], len(classes), tensors["onward.weight_hh_l0"].shape[1])
        network.load_state_dict(tensors)
    except (OSError, SafetensorError, RuntimeError, KeyError, ValueError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise HoldfastError(f"{path} is no network that holdfast trained on texts: {told}") from error
    network = network.eval().requires_grad_(False)
    chunk = _CPU_CHUNK if torch.device(device).type == "cpu" else None
    return TextModel(WordReader(vocabulary, LONGEST), network, classes, device=device, chunk=chunk)


def topic_sentences() -> Texts:
    """A hundred sentences written for this package, ten on each topic that ``topics_bilstm`` knows."""
    lines = (files("holdfast.data") / "files" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    topics, texts = zip(*(line.split("\t") for line in lines), strict=True)
    classes = tuple(dict.fromkeys(topics))
    names = tuple(f"sentence {number}" for number in range(len(lines)))
    return Texts(texts, torch.tensor([classes.index(topic) for topic in topics]), classes, names)
