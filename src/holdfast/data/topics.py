"""Texts in experiments, and networks that read them. Embedded: ten topics, a bidirectional LSTM on GloVe's vectors."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import SafetensorError, safe_open

from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place
from holdfast.data.texts import Texts, read_texts
from holdfast.data.train_text import LONGEST
from holdfast.errors import HoldfastError, HoldfastWarning, first_line
from holdfast.models.torch import TorchModel
from holdfast.text import BiLstm, TextModel, Vocabulary, WordReader, transformer

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
        raise HoldfastError(f"{path} is no network that holdfast trained on texts: {first_line(error)}") from error
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


# ---------------------------------------------------------------------- in experiments


@dataclass(frozen=True)
class TextData(DataSet):
    """Embedded sentences, or texts of ``root``: "newsgroups", "yahoo-answers", or a folder, archive or table of them.

    Attributes:
        min_words: Texts with fewer words are left out.
        max_words: Texts are cut after this many words.
    """

    min_words: int = 8
    max_words: int = 40
    name: ClassVar[str] = "texts"
    modality: ClassVar[str] = "text"
    networks: ClassVar[tuple[str, ...]] = ("text-bilstm", "huggingface")
    all_there: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.min_words <= self.max_words:
            raise HoldfastError(
                f"min_words must be at least 1 and at most max_words, got {self.min_words} and {self.max_words}."
            )

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        model = network.text_model(device)
        most = 50 * (self.first + self.count)  # many are too short
        texts = self.readable(topic_sentences() if self.root is None else read_texts(self.root, most=most), model)
        if class_numbers(texts, model) is None:
            warnings.warn(
                "the texts are of other classes than the network's: its own predictions are explained.",
                HoldfastWarning,
                stacklevel=4,
            )
        return self.examples(texts, model)

    def readable(self, texts: Texts, model: TextModel) -> Texts:
        """Return texts that are long enough and have known words, cut, the classes in turn."""
        texts = texts.cut(self.min_words, self.max_words)
        texts = texts.some([number for number, text in enumerate(texts.texts) if model.knows(text)]).in_turn()
        if not len(texts):
            raise HoldfastError(f"no text of {self.name} has {self.min_words} words, of which the network knows some.")
        return texts

    def examples(self, texts: Texts, model: TextModel) -> Examples:
        """Return the texts that the experiment uses, as the model reads them."""
        wanted = texts.first(self.first + self.count)
        sentences = model.read(wanted.texts)
        return Examples(sentences.x, wanted.names, sentences, model)


def class_numbers(texts: Texts, model: TextModel) -> list[int] | None:
    """Return the model's number for each class of the texts; None if it has other classes."""
    number = {name.lower(): at for at, name in enumerate(model.classes)}
    names = [name.lower() for name in texts.classes]
    return [number[name] for name in names] if set(names) <= set(number) else None


@dataclass(frozen=True)
class TextBiLstm(Network):
    """The embedded network of ten topics, or a file that ``holdfast train text-bilstm`` wrote."""

    name: ClassVar[str] = "text-bilstm"

    def text_model(self, device: str) -> TextModel:
        if self.weights == "train":
            raise HoldfastError(
                'model.weights should be "embedded" or a file: train one with holdfast train text-bilstm.'
            )
        return topics_bilstm(device) if self.weights == "embedded" else load_bilstm(self.weights, device)

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[TorchModel, dict[str, str]]:
        assert examples.text_model is not None
        about = {"network": self.called}
        if isinstance(data, TextData):
            about["texts"] = f"the first {data.max_words} words of each, none with fewer than {data.min_words}"
        return examples.text_model.classifier, about


@dataclass(frozen=True)
class HuggingFaceNetwork(TextBiLstm):
    """A sequence classifier of transformers, by its name on the hub or from a folder."""

    name: ClassVar[str] = "huggingface"
    variants: ClassVar[bool] = True

    def text_model(self, device: str) -> TextModel:
        if self.weights != "embedded":
            raise HoldfastError("model.weights is not for huggingface:NAME, which brings its own: leave it out.")
        return transformer(self.variant, device=device)
