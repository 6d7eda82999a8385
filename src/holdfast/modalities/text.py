"""Texts: relevant words are highlighted by rank, with the real words that the smallest change leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from holdfast.cases import Cases
from holdfast.columns import Columns
from holdfast.data.network import Network
from holdfast.errors import HoldfastError
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.figures import Plot
from holdfast.files import write_text
from holdfast.modalities.modality import Modality, Subject, radius_facts
from holdfast.modalities.shown import Shown, Stretch
from holdfast.modalities.source import Source
from holdfast.modalities.words_figure import words_figure
from holdfast.text import Sentences, by_word, substitute


class TextModality(Modality):
    """Texts. Features are words."""

    name: ClassVar[str] = "text"
    explainer: ClassVar[str] = "greedy-as-words"
    top: ClassVar[float | int] = 5
    default_features: ClassVar[str] = "words"
    unit: ClassVar[str] = "they are measured between vectors of words"
    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm")
    template: ClassVar[str] = "text.html"
    marks: ClassVar[str] = (
        "The relevant words are marked, the first the darkest. Behind an arrow: the first real word that the smallest "
        "change of the word's vector meets."
    )
    legend: ClassVar[str] = (
        f"The top {{top}} of the words by every method, that of Robustness-S̄r where it has two. {marks} The class "
        "changes into the one named when only these words change, or all others, by the length given."
    )

    def accepts(self, source: Source) -> bool:
        return source.text is not None

    def read(self, source: Source) -> Subject:
        if (source.file, source.digit, source.photo) != (None, None, None) or source.resize:
            raise HoldfastError("--text is a text by itself: leave images and their features out.")
        assert source.text is not None
        model = self._network(source.model or "topics").text_model(source.device)
        sentences = model.read(source.text)
        return Subject(
            self, model.classifier, sentences.x, source.text, source.text, sentences=sentences, text_model=model
        )

    @staticmethod
    def _network(name: str) -> Network:
        if name.endswith(".safetensors"):
            return Network.parse("text-bilstm", weights=name)
        if name != "topics" and not name.startswith("huggingface:"):
            raise HoldfastError(
                f"--model must be topics, a .safetensors file or huggingface:NAME for a text, got {name!r}."
            )
        return Network.parse("text-bilstm" if name == "topics" else name)

    def features(
        self, text: str | None, x: Tensor, sentences: Sentences | None = None, columns: Columns | None = None
    ) -> Features:
        if text not in (None, self.default_features):
            raise HoldfastError(f"features of texts must be words, got {text!r}.")
        assert sentences is not None
        return sentences.features

    def explained(self, subject: Subject, cases: Cases, explanation: Explanation) -> Explanation:
        """Add the text, the positions of its words, and whether real words in their place change the class."""
        assert subject.sentences is not None
        assert subject.text_model is not None
        assert explanation.moves is not None
        sentences, left = subject.sentences, subject.sentences.omitted[0]
        words, text, notes = sentences.words[0], sentences.texts[0], list(explanation.notes)
        if left:
            notes.insert(0, f"the model reads {len(words)} words of this text: the last {left} are left out.")
            text = f"{text[: words[-1].end]} …"
        witness = cases.x[:, None] + explanation.moves[:1].to(cases.x)
        new = substitute(cases, witness, subject.text_model.known_vectors)
        owner = cases.features.ids[0, :, 0].tolist()
        replacements = by_word(new.rows[0, 0].tolist(), owner, subject.text_model.known_names)
        effect = "change the prediction too" if bool(new.changed[0, 0]) else "do not change the prediction"
        chance = f"words drawn at random do in {float(new.by_chance[0, 0]):.0%} of draws"
        real = f"{effect}; {chance}" if replacements else "none: no change was found"
        return replace(
            explanation,
            text=text,
            spans=tuple((word.start, word.end) for word in words),
            replacements=replacements,
            notes=tuple(notes),
            extra=(("real words in their place", real),),
        )

    def facts(self, explanation: Explanation) -> list[tuple[str, str]]:
        words = [
            f"{name} (→ {new})" if (new := explanation.replacements.get(feature)) else name
            for feature in explanation.relevant
            for name in [explanation.features.name(feature)]
        ]
        return [("words", ", ".join(words)), *explanation.extra]

    def draw(self, explanations: Sequence[Explanation], path: Path, title: str) -> None:
        """Write one HTML page with the text as each method explains it. It loads nothing from the internet."""
        write_text(path, self.page(explanations, title))

    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        return words_figure(explanations, [stretches(one) for one in explanations])

    def shown(self, explanation: Explanation, title: str) -> Shown:
        return Shown(title, radius_facts(explanation), stretches=tuple(stretches(explanation)))


def stretches(explanation: Explanation) -> list[Stretch]:
    """Split the text of an explanation at its relevant words."""
    parts, end = [], 0
    for feature in sorted(explanation.relevant):
        start, stop = explanation.spans[feature]
        if start > end:
            parts.append(Stretch(explanation.text[end:start]))
        place = explanation.relevant.index(feature)
        parts.append(Stretch(explanation.text[start:stop], place, explanation.replacements.get(feature)))
        end = stop
    return [*parts, Stretch(explanation.text[end:])] if end < len(explanation.text) else parts
