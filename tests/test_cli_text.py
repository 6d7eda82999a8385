from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.data import topics_bilstm
from test_cli import Call, call, run

__all__ = ["call"]
TEXT = "The goalie stopped forty shots <b>and</b> the Rangers won."


@pytest.mark.slow
def test_a_text_is_highlighted_in_the_terminal_and_on_a_page(tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    methods = "greedy-as-quick,grad,expected-gradients"
    done = run("explain", "--text", TEXT, "--method", methods, "--target", "space", "--top", 3, "--out", page)
    told = " ".join(done.stdout.split())
    assert told.count("hockey (") == 3
    assert told.count("why hockey and not space?") == 3
    assert "changes to space" in told
    html = page.read_text(encoding="utf-8")
    assert html.count("<mark") == 9
    assert "&lt;b&gt;" in html, "what a text says is not a page's code"


def test_a_text_as_json_is_the_librarys_answer(call: Call, tmp_path: Path) -> None:
    out = ("--method", "grad", "--top", 3, "--out", tmp_path / "why.html", "--json")
    whole = json.loads(call("explain", "--text", TEXT, *out)[0])
    answer = whole["explanations"][0]
    model = topics_bilstm()
    read = model.read(TEXT)
    cases = model.ask(read)
    ranking = hf.Grad()(cases)
    order = [one["feature"] for one in answer["relevant"]]
    assert order == ranking.order[0, :3].tolist()
    assert [one["name"] for one in answer["relevant"]] == [read.words[0][n].text for n in order]
    relevant = ranking.top([3])
    radii = hf.Judge.quick()(cases, torch.cat([relevant, ~relevant], 1)).radius
    assert list(answer["radius"].values()) == pytest.approx(radii[0].tolist(), rel=1e-4)
    assert (whole["input"], whole["label"], whole["target"]) == (TEXT, "hockey", None)
    assert whole["probability"] == pytest.approx(float(model.classifier(cases.x).softmax(1)[0, cases.label[0]]))


@pytest.mark.filterwarnings("default")  # the command prints them
def test_what_was_not_read_is_said_where_the_answer_is(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    text = "The goalie stopped the puck. " + "Again. " * 210
    said, aside = call("explain", "--text", text, "--method", "grad", "--top", 2, "--out", page, "--json")
    assert "the last 15 are left out" in " ".join(aside.split())
    answer = json.loads(said)
    assert "the last 15 are left out" in answer["explanations"][0]["notes"][0]
    html = page.read_text(encoding="utf-8")
    assert "the last 15 are left out" in html
    assert html.count("Again") == 195


def test_several_methods_share_what_some_of_them_take(call: Call, tmp_path: Path) -> None:
    out = ("--top", 2, "--out", tmp_path / "why.html", "--json")
    told = call("explain", "--text", TEXT, "--method", "grad,leave-one-out", "--reference", "words", *out)[0]
    grad, loo = json.loads(told)["explanations"]
    assert grad["explainer"] == "Grad(seed=0)"
    assert "RandomWords" in loo["explainer"]
    told = call("explain", "--text", "The puck is here.", "--objective", "robustness-relevant", *out)[0]
    assert "RobustnessRelevant(robustness=MinNorm(p=2.0, steps=75" in json.loads(told)["explanations"][0]["explainer"]


def test_a_text_may_have_fewer_words_than_are_shown(call: Call, tmp_path: Path) -> None:
    told = " ".join(call("explain", "--text", "hockey puck", "--out", tmp_path / "why.html")[0].split())
    assert "no words are left to move" in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "a photograph with --photo, a text with --text"),
        (["--text", TEXT, "--method", ""], "there is no explainer ''"),
        (["--text", ""], "text 0 is empty"),
        (["--text", "?!"], "no word in it"),
        (["--text", "xqzzy qwrtp"], "knows none of the 2 words"),
        (["--text", TEXT, "--digit", 1], "name only one of: an image file"),
        (["--text", TEXT, "--features", "pixels"], "features of texts must be words, got 'pixels'"),
        (["--text", TEXT, "--resize"], "--text is a text by itself"),
        (["--text", TEXT, "--target", "cricket"], "there is no class 'cricket': use one of graphics"),
        (["--text", TEXT, "--target", "10"], "class from 0 to 9"),
        (["--text", TEXT, "--target", "hockey"], "is its own label"),
        (["--text", TEXT, "--model", "imagenet"], "--model must be topics"),
        (["--text", TEXT, "--model", "nowhere.safetensors"], "cannot read the network nowhere.safetensors"),
        (["--text", TEXT, "--method", "grad,lime"], "there is no explainer 'lime'"),
        (
            ["--text", TEXT, "--method", "grad,kernel-shap", "--objective", "robustness-rest"],
            "grad, kernel-shap has no objective",
        ),
        (["--text", TEXT, "--out", "why.png"], "must end in .html"),
        (
            ["--text", TEXT, "--reference", "blur", "--method", "kernel-shap"],
            "must be words or a number, got 'blur'",
        ),
    ],
)
def test_wrong_things_around_texts(call: Call, arguments: list[object], says: str) -> None:
    assert says in " ".join(call("explain", *arguments, code=2)[1].split())


def test_training_a_text_network_says_what_it_needs(call: Call, tmp_path: Path) -> None:
    needs = ("train", "text-bilstm", "--data", tmp_path, "--out", tmp_path / "w.safetensors")
    assert "needs --vectors" in call(*needs, code=2)[1]
    assert "--texts must be newsgroups or movies" in " ".join(
        call(*needs, "--vectors", "x", "--texts", "tweets", code=2)[1].split()
    )
    wrong = ("train", "mnist-cnn", "--data", tmp_path, "--vectors", "x", "--out", tmp_path / "w")
    assert "are for text-bilstm" in call(*wrong, code=2)[1]
