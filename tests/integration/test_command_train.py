"""`python -m specviz train …` as a user types it: a corpus, each drafter on it, the mean of two, and runs with them."""

import json
from pathlib import Path

import pytest

from specviz.__main__ import main
from specviz.trace import load_trace
from tests.kit import save_target, tiny_target
from tests.training import save_corpus

SHORT = ["--steps", "2", "--batch-tokens", "60", "--warm-up", "1", "--measure-every", "2", "--save-every", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny target, and a corpus that leaves answers to measure."""
    made = tmp_path_factory.mktemp("train")
    save_target(tiny_target(), made / "tiny")
    save_corpus(made / "answers.jsonl")
    return made


def train(folder: Path, method: str, out: str, *arguments: str) -> int:
    paths = ["--corpus", str(folder / "answers.jsonl"), "--out", str(folder / out), "--features", str(folder / "kept")]
    model = ["--model", str(folder / "tiny"), "--dtype", "float32"]
    return main(["train", method, *paths, *model, *SHORT, *arguments])


def decode(folder: Path, method: str, drafter: str) -> dict:
    out = folder / "trace.json"
    model = ["--model", str(folder / "tiny"), "--dtype", "float32", "--raw", "--max-new-tokens", "12"]
    prompt = ["--prompt", "abc", "--compare-plain", "--out", str(out)]
    assert main(["run", "--method", method, "--drafter", str(folder / drafter), *model, *prompt]) == 0
    trace = load_trace(out)
    assert trace.baseline.equal and trace.drafter.trained
    return trace.settings


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    """A drafter of each method, each trained by a command."""
    assert train(folder, "eagle3", "eagle3", "--draft-vocabulary", "100", "--unroll", "2") == 0
    assert train(folder, "confu", "confu", "--from", str(folder / "eagle3"), "--soft", "4", "--experts", "3") == 0
    assert train(folder, "lookahead", "slots", "--k", "3", "--prefix", "2", "--slot-attention", "diagonal") == 0
    return folder


def test_a_corpus_is_made_and_trained_on(folder: Path):
    prompts = folder / "prompts.jsonl"
    words = ["the sea", "one two", "a house", "my name", "red blue", "cold day", "long way", "last word"]
    lines = [{"prompt": f"{word} {i}"} for word in words for i in range(9)]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    sizes = ["--answers", "70", "--self-written", "0", "--max-new-tokens", "8", "--batch", "16"]
    model = ["--model", str(folder / "tiny"), "--dtype", "float32"]
    made = ["train", "corpus", "--out", str(folder / "made"), "--prompts", str(prompts), *sizes, *model]
    assert main(made) == 0
    paths = ["--corpus", str(folder / "made"), "--out", str(folder / "own"), "--features", str(folder / "kept")]
    assert main(["train", "eagle3", *paths, *model, *SHORT, "--draft-vocabulary", "50"]) == 0
    decode(folder, "eagle3", "own")


@pytest.mark.parametrize(("method", "drafter"), [("eagle3", "eagle3"), ("confu", "confu"), ("lookahead", "slots")])
def test_what_a_command_trained_decodes(trained: Path, method: str, drafter: str):
    decode(trained, method, drafter)
    card = (trained / drafter / "README.md").read_text(encoding="utf-8")
    assert f"python -m specviz train {method}" in card


def test_the_mean_of_two_decodes(trained: Path):
    assert train(trained, "eagle3", "further", "--from", str(trained / "eagle3")) == 0
    both = [str(trained / "eagle3"), str(trained / "further")]
    assert main(["train", "average", *both, "--out", str(trained / "mean")]) == 0
    decode(trained, "eagle3", "mean")


def test_weights_bring_their_shape(trained: Path):
    """Guards F38 for training: the card tells what was trained and not a default."""
    assert train(trained, "lookahead", "slots again", "--from", str(trained / "slots")) == 0
    training = json.loads((trained / "slots again" / "training.json").read_text(encoding="utf-8"))
    assert (training["k"], training["prefix"], training["slot_attention"]) == (3, 2, "diagonal")
    assert train(trained, "confu", "confu again", "--from", str(trained / "confu"), "--experts", "3") == 0
    training = json.loads((trained / "confu again" / "training.json").read_text(encoding="utf-8"))
    assert (training["soft"], training["experts"], training["selected_experts"]) == (4, 3, 2)
    assert train(trained, "eagle3", "eagle3 again", "--from", str(trained / "eagle3")) == 0
    training = json.loads((trained / "eagle3 again" / "training.json").read_text(encoding="utf-8"))
    assert training["draft_vocabulary"] == 100


@pytest.mark.parametrize(
    ("method", "parent", "arguments", "words"),
    [
        ("lookahead", "slots", ["--k", "4"], "'slots' has another k (3, not 4): leave --k out"),
        ("lookahead", "slots", ["--prefix", "1"], "another prefix (2, not 1)"),
        ("lookahead", "slots", ["--slot-attention", "causal"], "another slot attention (diagonal, not causal)"),
        ("confu", "confu", ["--soft", "8"], "another soft (4, not 8)"),
        (
            "confu",
            "confu",
            ["--selected-experts", "1"],
            "another selected experts (2, not 1)",
        ),
        ("eagle3", "eagle3", ["--draft-vocabulary", "7"], "another draft vocabulary"),
        ("eagle3", "slots", [], "is for lookahead, not for eagle3"),
        ("lookahead", "eagle3", [], "is for 'eagle3', not for lookahead"),
    ],
    ids=str,
)
def test_another_shape_than_the_weights_is_refused(
    trained: Path, capsys: pytest.CaptureFixture, method: str, parent: str, arguments: list[str], words: str
):
    assert train(trained, method, "refused", "--from", str(trained / parent), *arguments) == 2
    assert words in capsys.readouterr().err
    assert not (trained / "refused").exists()
