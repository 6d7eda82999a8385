from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import holdfast as hf
from holdfast import cli
from holdfast.cli import arguments as words
from speed import slowness
from studies import SMALL

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "120"}
COMMAND = [str(Path(sys.executable).with_name("holdfast"))]


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


Call = Callable[..., tuple[str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command in this process, which need not load torch again: what it printed, on both streams."""

    def called(*arguments: object, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["holdfast", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command sets its own
        ended = 0
        try:
            cli.main()
        except SystemExit as stop:
            ended = int(stop.code or 0)
        printed = capsys.readouterr()
        assert ended == code, printed.err
        return printed.out, printed.err

    return called


def test_demo_ends_in_a_page(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.demo._EXPERIMENT", str(SMALL))  # the real one takes minutes
    printed, said = call("demo", "--out", tmp_path / "new", "--digits", 2)
    assert "On 2 examples, after Holm's correction, " in printed
    assert printed.strip().endswith(f"report: {tmp_path}/new/report.html")
    assert "Greedy-AS" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert said == "", "no bars where nobody looks"


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_folder_of_an_over_long_name_is_refused(call: Call, more: list[str]) -> None:
    _, said = call("run", SMALL, "--limit", 1, "--out", "9" * 400, *more, code=2)
    assert "File name too long" in said
    assert "cannot print" not in said


def test_run_report_and_export(call: Call, tmp_path: Path) -> None:
    planned, _ = call("run", SMALL, "--limit", 1, "--out", tmp_path, "--dry-run", "--json")
    plan = json.loads(planned)
    assert not (tmp_path / "results.db").exists()
    printed, _ = call("run", SMALL, "--limit", 1, "--out", tmp_path, "--json")
    lines = [json.loads(line) for line in printed.splitlines()]
    assert lines[-1]["event"] == "end"
    assert lines[-1]["made"] == len(lines) - 1 == plan["total"]["units"]
    assert [line["done"] for line in lines[:-1]] == sorted(line["done"] for line in lines[:-1])
    again, _ = call("run", SMALL, "--limit", 1, "--out", tmp_path)
    assert "0 units computed" in again
    assert "makes a page of it" in again
    table, _ = call("run", SMALL, "--limit", 1, "--out", tmp_path, "--dry-run")
    assert "ranking" in table
    results = tmp_path / "results.db"
    written, _ = call(
        "report",
        results,
        "-o",
        tmp_path / "r.html",
        "--latex",
        tmp_path / "t.tex",
        "--csv",
        tmp_path / "csv",
        "--markdown",
        tmp_path / "t.md",
    )
    assert "Greedy-AS" in written
    assert (tmp_path / "t.tex").read_text().count(r"\begin{table}") == len(list((tmp_path / "csv").iterdir())) > 8
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("# A small experiment")
    told, _ = call("export", results, "-o", tmp_path / "values.csv")
    assert "values (example, explainer, optimises, criterion, size, value, bound, censored)" in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "paper"], "there is no experiment 'paper': did you mean"),
        (["run", SMALL, "--engine", "dask"], "there is no engine 'dask': use one of local, ray."),
        (["run", SMALL, "--address", "x:1"], "--address and --workers are not for the engine local"),
        (["run", SMALL, "--device", "cuda:9"], "cannot be used here"),
        (["run", "paper-fashion"], "--data FOLDER"),
        (["report", "none.db"], "there are no results none.db"),
        (["report", SMALL, "-o", "page.pdf"], "must be an HTML file"),
        (["report", SMALL], "is not a file of holdfast's results"),
        (["export", "none.db", "-o", "x.csv"], "there are no results none.db"),
    ],
)
def test_wrong_things_around_experiments(
    call: Call, arguments: list[object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, said = call(*arguments, code=2)
    assert says in " ".join(said.split())
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_results_cannot_go_into_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    _, said = call("run", SMALL, "--out", tmp_path / "file", code=2)
    assert "cannot make the folder" in " ".join(said.split())


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [*COMMAND, "run", str(SMALL), "--out", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as begun:
        assert begun.stdout is not None
        begun.stdout.readline()
        begun.send_signal(signal.SIGINT)
        printed, said = begun.communicate(timeout=60 * slowness())
    assert begun.returncode == 130
    ended = json.loads(printed.splitlines()[-1])
    assert ended["stopped"]
    assert ended["missing"] > 0
    assert "the same command continues from here" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_robustness_as_json_is_the_librarys_answer(tmp_path: Path) -> None:
    done = run("robustness", "--digit", 3, "--method", "min-norm", "--p", "inf", "--json", "--out", tmp_path / "a.png")
    answer = json.loads(done.stdout)
    row = answer["rows"][0]
    cases = hf.data.mnist_cnn().ask(hf.data.mnist().x[3:4])
    radii = hf.MinNorm(float("inf"))(cases, hf.Features.pixels((1, 28, 28)).ids.flatten()[None, None] >= 0)
    assert row["radius"] == pytest.approx(radii.radius.item(), rel=1e-4)
    assert row["new class"] == str(int(radii.new_class))
    assert row["label"] == "0"
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_picture_file_with_a_mask_and_a_target(tmp_path: Path) -> None:
    digit = (hf.data.mnist().x[0, 0] * 255).byte().numpy()
    Image.fromarray(digit).save(tmp_path / "seven.png")
    half = Image.new("L", (28, 28))
    half.paste(255, (0, 0, 28, 14))
    half.save(tmp_path / "half.png")
    done = run(
        "robustness", tmp_path / "seven.png", "--target", 9, "--mask", tmp_path / "half.png", "--method", "min-norm"
    )
    assert "why 7 and not 9?" in done.stdout
    assert "392 of 784" in done.stdout
    done = run("robustness", tmp_path / "seven.png", "--features", "patches:4", "--subset", "rest:20%", "--json")
    assert len(json.loads(done.stdout)["rows"]) == 1


def test_a_mistake_ends_the_process_with_2() -> None:
    assert "between 0 and 999" in run("robustness", "--digit", 5000, code=2).stderr


def test_list_and_version(call: Call) -> None:
    listed = json.loads(call("list", "--json")[0])
    for title, base in (
        ("robustness methods", hf.Robustness),
        ("explainers", hf.Explainer),
        ("criteria", hf.Criterion),
    ):
        assert {row["class"] for row in listed[title]} == {cls.__name__ for cls in base.registry.classes().values()}
    shap = next(row for row in listed["explainers"] if row["name"] == "kernel-shap-paper")
    assert (shap["from"], shap["model rows"]) == ("Lundberg & Lee 2017", 20_002)
    assert shap["needs"] == ["decisions", "a reference value"]
    assert {row["name"] for row in listed["engines"]} == {"local", "ray"}
    assert "paper-mnist" in listed["experiments"]
    assert "Wachter" in call("list")[0]
    assert call("--version")[0].startswith(f"holdfast {hf.__version__}")


def test_list_tells_all_about_one(call: Call) -> None:
    told = call("list", "bbmp")[0]
    assert "Fong & Vedaldi 2017" in told
    assert json.loads(call("list", "judge", "--json")[0])["settings"]["starts"] == "24"
    assert "there is no name 'lime'" in call("list", "lime", code=2)[1]


OF_OTHER_INPUTS = {
    "brute-force": "49 features have 2,138,409 of up to 5, over most_subsets = 5,000",
    "tree-shap": "TreeShap explains models that hf.trees made",
}
METHODS = [name for name in hf.Explainer.registry.makers() if not name.endswith("-paper")]


@pytest.mark.parametrize("method", OF_OTHER_INPUTS)
def test_explain_says_which_methods_are_for_other_inputs(call: Call, method: str) -> None:
    told = call("explain", "--digit", 0, "--method", method, "--features", "patches:4", "--top", 5, code=2)[1]
    assert OF_OTHER_INPUTS[method] in " ".join(told.split())


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in METHODS if name not in OF_OTHER_INPUTS])
def test_explain_takes_every_method(call: Call, method: str, tmp_path: Path) -> None:
    out = ("--features", "patches:4", "--out", tmp_path / "e.png", "--json")
    answer = json.loads(call("explain", "--digit", 0, "--method", method, "--top", 5, *out)[0])
    assert len(answer["explanations"][0]["relevant"]) == 5


@pytest.mark.slow
def test_features_chosen_by_chance_are_said(tmp_path: Path) -> None:
    out = ("--top", "40%", "--out", tmp_path / "e.png")
    told = " ".join(run("explain", "--digit", 0, "--method", "integrated-gradients", *out).stdout.split())
    assert "of the 314 relevant features have the same score as some that are not" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["robustness"], "name one of: an image file, an embedded digit"),
        (["robustness", "--digit", 5000], "between 0 and 999"),
        (["robustness", "nowhere.png"], "cannot read the image"),
        (["robustness", "--digit", 1, "--p", 3], "p must be 1, 2 or inf"),
        (["robustness", "--digit", 1, "--p", "two"], "p must be 1, 2 or inf"),
        (["robustness", "--digit", 1, "--target", 11], "class from 0 to 9"),
        (["robustness", "--digit", 1, "--target", "9" * 5000], "there is no class"),
        (["robustness", "--digit", 1, "--method", "jugde"], "did you mean judge"),
        (["robustness", "--digit", 0, "--target", 7], "its own label 7"),
        (["robustness", "--digit", 1, "--features", "blobs"], "pixels, patches:N or superpixels:N"),
        (["robustness", "--digit", 1, "--subset", "top:120%"], "--subset must be"),
        (["robustness", "--digit", 1, "--method", "magic"], "there is no robustness method 'magic'"),
        (["robustness", "--digit", 1, "--method", "exact-linear"], "not affine"),
        (["robustness", "--digit", 1, "--device", "abacus"], "cannot be used here"),
        (["train", "gpt", "--data", "."], "there is no network"),
        (["train", "mnist-cnn", "--data", "nowhere"], "pass download=True"),
        (["robustness", "--digit", "x"], "Invalid value"),
        (["robustness", "[/foo].png"], "cannot read the image [/foo].png"),
        (["robustness", "--digit", 1, "--device", "meta"], "cannot be used here"),
        (["robustness", "--digit", 1, "--mask", "a.png", "--subset", "top:5%"], "give one of them"),
        (["train", "mnist-cnn", "--data", ".", "--out", "nowhere/weights"], "does not exist"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(call: Call, arguments: list[object], message: str) -> None:
    out, err = call(*arguments, code=2)
    assert message in " ".join(err.replace("│", " ").split())
    assert out == ""


def test_a_picture_of_the_wrong_size_says_what_to_do(call: Call, tmp_path: Path) -> None:
    Image.new("RGB", (50, 40)).save(tmp_path / "wide.png")
    assert "add --resize" in " ".join(call("robustness", tmp_path / "wide.png", code=2)[1].split())
    (tmp_path / "text.png").write_text("not a picture")
    assert "cannot read the image" in call("robustness", tmp_path / "text.png", code=2)[1]


@pytest.mark.slow
def test_explain_draws_and_tells(tmp_path: Path) -> None:
    out = ("--features", "patches:2", "--out", tmp_path / "e.png")
    done = run("explain", "--digit", 0, "--target", 9, "--top", "10%", *out)
    assert "why 7 and not 9?" in done.stdout
    assert "20 of 196 patches of 2 x 2" in done.stdout
    assert "pertinent negative" in done.stdout
    assert (tmp_path / "e.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_reference_outside_the_box_is_said_on_stderr(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "e.png", "--json")
    done = run("explain", "--digit", 3, "--method", "leave-one-out", "--reference", 2, "--features", "patches:4", *out)
    assert done.stderr.startswith("holdfast: the reference has values from 2 to 2, some of them outside")
    assert "reference=2.0" in json.loads(done.stdout)["explanations"][0]["explainer"]


@pytest.mark.slow
def test_explain_as_json_is_the_librarys_answer(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "e.png", "--json")
    whole = json.loads(run("explain", "--digit", 3, "--method", "grad", "--top", 30, *out).stdout)
    answer = whole["explanations"][0]
    cases = hf.data.mnist_cnn().ask(hf.data.mnist().x[3:4])
    order = [one["feature"] for one in answer["relevant"]]
    assert order == hf.Grad()(cases).order[0, :30].tolist()
    assert answer["explainer"] == "Grad(seed=0)"
    assert list(answer["radius"]) == list(answer["new class"]) == ["only these move", "these are held"]
    assert set(answer["pertinent positive"]) | set(answer["pertinent negative"]) <= set(order)
    assert (whole["input"], whole["label"], whole["target"]) == (3, "0", None)


def test_an_interrupted_explanation_ends_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(hf.Explainer):
        def rank(self, cases: hf.Cases, progress: object = None) -> hf.Ranking:
            raise KeyboardInterrupt

    monkeypatch.setattr(words.Wanted, "explainers", lambda self, names, words=None: dict.fromkeys(names, Interrupted()))
    monkeypatch.setattr(sys, "argv", ["holdfast", "explain", "--digit", "0", "--out", str(tmp_path / "e.png")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code not in (0, None)
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "e.png").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--digit", 0, "--top", "0%"], "--top must be a share over 0"),
        (["--digit", 0, "--top", "120%"], "--top must be a share over 0"),
        (["--digit", 0, "--top", "many"], "a share such as 20%"),
        (["--digit", 0, "--top", 5000, "--method", "grad"], "at most the 784 features"),
        (["--digit", 0, "--method", "lime"], "there is no explainer 'lime'"),
        (["--digit", 0, "--objective", "both"], "--objective must be one of robustness-rest, robustness-relevant"),
        (["--digit", 0, "--method", "grad", "--reference", 0], "grad has no reference to choose"),
        (["--digit", 0, "--method", "grad", "--objective", "robustness-rest"], "grad has no objective to choose"),
        (
            ["--digit", 0, "--method", "kernel-shap", "--reference", "black"],
            "reference must be a number, a tensor or one of",
        ),
        (["--digit", 0, "--method", "anchor"], "784 features x 32 rows are over most_rows = 20000: use fewer features"),
        (["--digit", 0, "--target", 7], "its own label 7"),
        (["--digit", 0, "--out", "picture.foo"], "must end in a kind of picture"),
        (["--digit", 0, "--out", "/proc/picture.png"], "cannot write /proc/picture.png"),
        (["--digit", 0, "--seed", 10**20], "--seed"),
        ([], "name one of: an image file, an embedded digit"),
    ],
)
def test_explain_refuses_in_one_sentence(call: Call, arguments: list[object], says: str) -> None:
    assert says in " ".join(call("explain", *arguments, code=2)[1].replace("│", " ").split())
