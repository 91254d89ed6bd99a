"""`python -m specviz.training.ablations`: what it trains, its table, and that it goes on where it was."""

import json
from pathlib import Path

import pytest

from specviz.errors import SpecVizError
from specviz.training import ablations
from specviz.training.ablations import TABLE, VARIANTS, Variant, compare_variants
from tests.kit import save_target, tiny_target
from tests.training import save_corpus

SHORT = ["--batch-tokens", "60", "--warm-up", "1", "--measure-every", "2", "--save-every", "1", "--unroll", "2"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments that all variants share: a tiny target, a corpus, a head."""
    from specviz.__main__ import main

    folder = tmp_path_factory.mktemp("ablations")
    save_target(tiny_target(), folder / "tiny")
    paths = ["--corpus", str(save_corpus(folder / "answers.jsonl")), "--features", str(folder / "kept")]
    model = ["--model", str(folder / "tiny"), "--dtype", "float32"]
    started = ["train", "eagle3", *paths, *model, *SHORT, "--steps", "1", "--draft-vocabulary", "100"]
    assert main([*started, "--out", str(folder / "head")]) == 0
    return [*paths, *model, *SHORT, "--from", str(folder / "head")]


def test_every_variant_is_trained_and_told(shared: list[str], tmp_path: Path):
    table = compare_variants(VARIANTS, [*shared, "--steps", "2"], tmp_path)
    assert (tmp_path / TABLE).read_text(encoding="utf-8") == table
    rows = {row.split("|")[1].strip(): row.split("|")[2:-1] for row in table.splitlines()[2:]}
    assert list(rows) == [variant.words for variant in VARIANTS]
    for variant in VARIANTS:
        measures = json.loads((tmp_path / variant.name / "curve.json").read_text(encoding="utf-8"))["measures"]
        assert rows[variant.words][0].strip() == f"{measures[-1]['tau']:.3f}"
        assert measures[-1]["step"] == 2
    trained = {
        variant.name: json.loads((tmp_path / variant.name / "training.json").read_text(encoding="utf-8"))
        for variant in VARIANTS
    }
    assert trained["control"]["method"] == "eagle3"
    assert (trained["confu"]["soft"], trained["confu"]["experts"], trained["confu"]["replication"]) == (16, 8, 4)
    assert (trained["no-experts"]["experts"], trained["no-experts"]["selected_experts"]) == (1, 1)
    assert trained["no-soft-prompt"]["soft"] == 0
    assert trained["no-replication"]["replication"] == 1
    assert (trained["every-row"]["anchor_stride"], trained["every-row"]["replication"]) == (1, 1)


def test_it_goes_on_where_it_was(shared: list[str], tmp_path: Path):
    whole = compare_variants(VARIANTS[:2], [*shared, "--steps", "2"], tmp_path / "whole")
    again = tmp_path / "again"
    compare_variants(VARIANTS[:1], [*shared, "--steps", "2"], again)
    before = (again / "control" / "curve.json").read_text(encoding="utf-8")
    assert _taus(compare_variants(VARIANTS[:2], [*shared, "--steps", "2"], again)) == _taus(whole)
    assert (again / "control" / "curve.json").read_text(encoding="utf-8") == before  # not trained again


def _taus(table: str) -> list[str]:
    return [row.split("|")[2] for row in table.splitlines()]


def test_a_training_that_is_refused_is_told_and_the_table_kept(shared: list[str], tmp_path: Path, capsys):
    compare_variants(VARIANTS[:1], [*shared, "--steps", "1"], tmp_path)
    kept = (tmp_path / TABLE).read_text(encoding="utf-8")
    with pytest.raises(SpecVizError, match="'too many' did not run"):
        compare_variants(
            [Variant("too many", "nothing", options={"selected-experts": 9})], [*shared, "--steps", "1"], tmp_path
        )
    assert "9 of 8 experts cannot be selected" in capsys.readouterr().err
    assert (tmp_path / TABLE).read_text(encoding="utf-8") == kept


def test_the_command_hands_the_options_of_train_on(shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["ablations", *shared, "--steps", "1", "--out", str(tmp_path), "--only", "control", "--seed", "7"]
    )
    assert ablations.main() == 0
    assert VARIANTS[0].words in capsys.readouterr().out
    assert json.loads((tmp_path / "control" / "training.json").read_text(encoding="utf-8"))["seed"] == 7
