"""Texts in experiments, and the networks that read them.

The package contains a hundred sentences on ten topics, and a bidirectional LSTM over GloVe vectors for these topics.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import safe_open

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.digits import MOST_WEIGHTS
from holdfast.data.network import Network, Place
from holdfast.data.texts import Texts, read_texts
from holdfast.data.train_text import LONGEST
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.files import reading, shown
from holdfast.settings import Count
from holdfast.text import BiLstm, TextModel, Vocabulary, WordReader, transformer

_CPU_CHUNK = 64  # rows at once: an LSTM takes one step for each word, so larger batches than for images are faster


def topics_bilstm(device: torch.device | str = "cpu") -> TextModel:
    """Load the network of ten topics that the package contains. Its model card states training and accuracy.

    Args:
        device: Where the network computes.
    """
    with as_file(files("holdfast.data") / "files" / "topics-bilstm.safetensors") as path:
        return load_bilstm(path, device)


def load_bilstm(path: str | Path, device: torch.device | str = "cpu") -> TextModel:
    """Load a network that ``holdfast train text-bilstm`` has trained. Nothing in the file is executed.

    Args:
        path: The safetensors file, with words, vectors and weights.
        device: Where the network computes.

    Returns:
        The network, with a reader of its words.

    Raises:
        HoldfastError: The file cannot be read, or is no such network.
    """
    with reading(path, "the network", MOST_WEIGHTS):
        with safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118  # it is no dict
        lacking = {"vectors", "onward.weight_hh_l0"} - set(tensors) | {"classes", "words"} - set(metadata)
        classes = [] if lacking else json.loads(metadata["classes"])
        if lacking or not isinstance(classes, list) or not all(isinstance(one, str) for one in classes):
            wrong = ", ".join(sorted(lacking)) or "a list of classes"
            raise HoldfastError(f"{shown(path)} is no network that holdfast trained on texts: it lacks {wrong}.")
        vocabulary = Vocabulary(tuple(metadata["words"].split("\n")), tensors.pop("vectors"))
        with torch.device("meta"):  # shapes are compared before memory is taken for what they claim
            network = BiLstm(vocabulary.vectors.shape[1], len(classes), tensors["onward.weight_hh_l0"].shape[1])
        network.load_state_dict(tensors, assign=True)
        network = network.eval().requires_grad_(False)
        chunk = _CPU_CHUNK if torch.device(device).type == "cpu" else None
        return TextModel(WordReader(vocabulary, LONGEST), network, classes, device=device, chunk=chunk)


def topic_sentences() -> Texts:
    """Return a hundred sentences written for this package, ten on each topic of ``topics_bilstm``."""
    lines = (files("holdfast.data") / "files" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    topics, texts = zip(*(line.split("\t") for line in lines), strict=True)
    classes = tuple(dict.fromkeys(topics))
    names = tuple(f"sentence {number}" for number in range(len(lines)))
    return Texts(texts, torch.tensor([classes.index(topic) for topic in topics]), classes, names)


# ---------------------------------------------------------------------- in experiments


@dataclass(frozen=True)
class TextData(DataSet):
    """Texts with enough words, cut after ``max_words``, the classes in turn.

    Attributes:
        root: ``"newsgroups"``, ``"yahoo-answers"``, or a folder, archive or table, as for ``read_texts``. None: the
            sentences that the package contains.
        min_words: Texts with fewer words are left out.
        max_words: Texts are cut after this many words.
    """

    min_words: Count = 8
    max_words: Count = 40
    name: ClassVar[str] = "texts"
    modality: ClassVar[str] = "text"
    networks: ClassVar[tuple[str, ...]] = ("text-bilstm", "huggingface")
    allow_fewer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_words > self.max_words:
            raise HoldfastError(f"min_words must be at most max_words, got {self.min_words} and {self.max_words}.")

    def load(self, network: Any, limit: int | None, device: str) -> Examples:
        model = network.text_model(device)
        most = 50 * (self.first + self.count)  # many texts are too short
        texts = self.readable(topic_sentences() if self.root is None else read_texts(self.root, most=most), model)
        if class_numbers(texts, model) is None:
            warnings.warn(
                "the classes of the texts are not those of the network: its own predictions are explained.",
                HoldfastWarning,
                stacklevel=4,
            )
        return self.examples(texts, model)

    def readable(self, texts: Texts, model: TextModel) -> Texts:
        """Return the texts that the model can read, cut, the classes in turn.

        Args:
            texts: All texts.
            model: The model of the experiment.

        Raises:
            HoldfastError: No text is long enough and has a word that the model knows.
        """
        texts = texts.cut(self.min_words, self.max_words)
        texts = texts.select([number for number, text in enumerate(texts.texts) if model.knows(text)]).in_turn()
        if not len(texts):
            raise HoldfastError(
                f"no text of {self.name} has {self.min_words} words, of which the network must know one."
            )
        return texts

    def examples(self, texts: Texts, model: TextModel) -> Examples:
        """Return the first texts, as many as the experiment uses, as inputs of the model."""
        used = texts.first(self.first + self.count)
        sentences = model.read(used.texts)
        return Examples(sentences.x, used.names, sentences, model)


def class_numbers(texts: Texts, model: TextModel) -> list[int] | None:
    """Return the model's number of each class of some texts; None if a class is not among the model's."""
    number_of = {name.lower(): number for number, name in enumerate(model.classes)}
    names = [name.lower() for name in texts.classes]
    return [number_of[name] for name in names] if set(names) <= set(number_of) else None


@dataclass(frozen=True)
class TextBiLstm(Network):
    """A bidirectional LSTM over word vectors.

    Attributes:
        weights: ``"embedded"`` (ten topics) or a file that ``holdfast train text-bilstm`` has written.
    """

    name: ClassVar[str] = "text-bilstm"

    def text_model(self, device: str) -> TextModel:
        if self.weights == "train":
            raise HoldfastError(
                'model.weights should be "embedded" or a file: train one with holdfast train text-bilstm.'
            )
        return topics_bilstm(device) if self.weights == "embedded" else load_bilstm(self.weights, device)

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        assert examples.text_model is not None
        facts = {"network": self.full_name}
        if isinstance(data, TextData):
            facts["texts"] = f"the first {data.max_words} words of each, none with fewer than {data.min_words}"
        return examples.text_model.classifier, facts


@dataclass(frozen=True)
class HuggingFaceNetwork(TextBiLstm):
    """A sequence classifier of Hugging Face transformers.

    Attributes:
        variant: Its name on the hub, or a folder.
    """

    name: ClassVar[str] = "huggingface"
    variants: ClassVar[bool] = True

    def text_model(self, device: str) -> TextModel:
        if self.weights != "embedded":
            raise HoldfastError("model.weights does not apply to huggingface:NAME, which brings its own: leave it out.")
        return transformer(self.variant, device=device)
