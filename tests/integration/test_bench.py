"""`python -m specviz bench` on the tiny target: the table resumes, agrees with the traces, counts what happened."""

import json
import re
from pathlib import Path

import pytest
from plotly.graph_objects import Figure

from specviz.__main__ import main
from specviz.drafters.checkpoint_confu import save_confu
from specviz.drafters.checkpoint_eagle3 import save_eagle3
from specviz.evaluation import lanes, publish
from specviz.evaluation.figures import build_figures
from specviz.evaluation.records import LaneRecord
from specviz.evaluation.report import Report
from specviz.metrics import pool_metrics
from specviz.trace import load_trace
from specviz.training.curve import Curve
from tests.heads import random_head, random_parts
from tests.kit import Target, save_target, tiny_target

QUESTIONS = [
    (81, "writing", "the sea, the sea"),
    (82, "math", "1 + 1 = 2, 1 + 2 ="),
    (83, "writing", "a | b"),
]
MEASURED = {"draft_ms", "verify_ms", "tokens_per_second", "speedup"}


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


@pytest.fixture(scope="module")
def folder(target: Target, tmp_path_factory) -> Path:
    """A folder with the target, two checkpoints of a head and the questions."""
    folder = tmp_path_factory.mktemp("bench")
    save_target(target, folder / "tiny")
    for seed in (0, 1):
        save_head(folder / f"head{seed}", target, seed)
    lines = [json.dumps({"question_id": i, "category": c, "turns": [turn, "more"]}) for i, c, turn in QUESTIONS]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def save_head(folder: Path, target: Target, seed: int) -> None:
    save_eagle3(folder, random_head(target, seed))


def bench(folder: Path, out: str, *arguments: str) -> int:
    common = ["--questions", str(folder / "questions.jsonl"), "--model", str(folder / "tiny"), "--dtype", "float32"]
    return main(["bench", *common, "--max-new-tokens", "9", "--out", str(folder / out), *arguments])


def read_report(path: Path) -> Report:
    return Report.model_validate_json((path / "report.json").read_text(encoding="utf-8"))


def read_records(path: Path) -> list[LaneRecord]:
    lines = (path / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [LaneRecord.model_validate_json(line) for line in lines]


def counted(report: Report) -> dict:
    """Return the report without what a clock measured."""
    values = report.model_dump()
    for lane in values["lanes"].values():
        for summary in (lane["overall"], *lane["by_category"].values()):
            for name in MEASURED:
                del summary[name]
    return values


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """A bench that nothing interrupted."""
    assert bench(folder, "whole", "--methods", "lookahead,eagle3", "--nodes", "4", "8") == 0
    return folder / "whole"


def test_the_report_has_every_lane_peer_and_category(whole: Path):
    report = read_report(whole)
    peers = ["generate", "generate, prompt lookup"]
    assert list(report.lanes) == ["plain", "lookahead", "eagle3 nodes=4", "eagle3 nodes=8", *peers]
    assert report.categories == ["writing", "math"]
    assert report.lanes["plain"].overall.tau == 1 and report.lanes["plain"].overall.speedup == 1
    assert [lane.overall.n_questions for lane in report.lanes.values()] == [3] * 6
    assert report.lanes["eagle3 nodes=8"].overall.rows_per_pass == 8
    for name in ("lookahead", "eagle3 nodes=4", *peers):
        assert report.lanes[name].overall.exactness == {"equal": 3}


def test_tau_is_that_of_the_saved_traces(whole: Path):
    report = read_report(whole)
    for name in ("plain", "lookahead", "eagle3 nodes=8"):
        own = [record for record in read_records(whole) if record.lane == name]
        metrics = pool_metrics([load_trace(whole / record.trace) for record in own])
        summary = report.lanes[name].overall
        assert (summary.tau, summary.tau_draft) == (metrics["tau"], metrics["tau_draft"])
        assert summary.rows_per_pass == metrics["rows_per_pass"]
        assert summary.acceptance_rate == metrics["acceptance_rate"]
        by_depth = {str(depth): rate for depth, rate in summary.acceptance_by_depth.items()}
        assert by_depth == metrics["acceptance_by_depth"]
        assert summary.verify_ms == pytest.approx(metrics["verify_ms"])


def test_interrupted_and_resumed_gives_the_same_table(folder: Path, whole: Path, monkeypatch):
    answer, n_calls = lanes.EngineLane.answer, 0

    def interrupted(lane, questions):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 6:
            raise KeyboardInterrupt
        return answer(lane, questions)

    arguments = ("--methods", "lookahead,eagle3", "--nodes", "4", "8")
    with monkeypatch.context() as patch:
        patch.setattr(lanes.EngineLane, "answer", interrupted)
        assert bench(folder, "resumed", *arguments) == 130
    n_kept = len(read_records(folder / "resumed"))
    with (folder / "resumed" / "records.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question_id": 82, "cat')  # what a killed process leaves
    assert bench(folder, "resumed", *arguments) == 0
    assert 0 < n_kept < len(read_records(folder / "resumed")) == len(read_records(whole))
    assert counted(read_report(folder / "resumed")) == counted(read_report(whole))


def test_a_finished_bench_runs_nothing_again(folder: Path, whole: Path, monkeypatch):
    before = (whole / "report.md").read_text(encoding="utf-8")
    monkeypatch.setattr(lanes.EngineLane, "answer", lambda *_: pytest.fail("ran again"))
    assert bench(folder, "whole", "--methods", "lookahead,eagle3", "--nodes", "4", "8") == 0
    assert (whole / "report.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-new-tokens", "5"], "max_new_tokens 9, not 5"),
        (["--temperature", "0.7"], "temperature 0.0, not 0.7"),
        (["--record", "full"], "record 'light', not 'full'"),
    ],
)
def test_other_conditions_are_not_mixed_into_a_folder(folder: Path, whole: Path, arguments, words, capsys):
    assert bench(folder, "whole", "--methods", "lookahead", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and "choose another --out folder" in error and "Traceback" not in error


def test_figures_are_plotly_s_and_the_page_needs_no_network(whole: Path):
    figures = build_figures(read_report(whole))
    assert {"Speed over nodes", "Tokens per target pass by category", "Acceptance by depth"} <= set(figures)
    for figure in figures.values():
        Figure(figure)
    assert figures["Speed over nodes"]["data"][0]["x"] == [4, 8]
    page = (whole / "plots.html").read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot(") >= len(figures) and not re.search(r"<(script|link)[^>]+(src|href)=", page)


def test_acceptance_by_depth_is_told_for_each_category(whole: Path):
    """As a table in the category's section, and as a map for each lane that drafts."""
    report, figures = read_report(whole), build_figures(read_report(whole))
    markdown = (whole / "report.md").read_text(encoding="utf-8")
    lane = report.lanes["eagle3 nodes=8"]
    trace = figures["Acceptance by depth and category: eagle3 nodes=8"]["data"][0]
    assert trace["y"] == ["writing", "math", "overall"]
    for row, summary in zip(trace["z"], [*lane.by_category.values(), lane.overall], strict=True):
        told = {int(depth): rate for depth, rate in zip(trace["x"], row, strict=True) if rate is not None}
        assert told == summary.acceptance_by_depth
    assert not any(title.endswith(": plain") for title in figures)
    for category in report.categories:
        section = markdown.split(f"### {category}\n")[1].split("###")[0]
        rates = lane.by_category[category].acceptance_by_depth
        rows = [line for line in section.splitlines() if line.startswith(f"| {min(rates)} |")]
        assert len(rows) == 1 and f"{rates[min(rates)]:.2f}" in rows[0]


def test_a_bench_and_the_training_curves_are_published_on_one_page(folder: Path, whole: Path, monkeypatch):
    curve = Curve()
    for step in (1, 2):
        curve.add_step(step, {"loss": 3.0 - step, "tokens": 10, "seconds": float(step)})
    curve.add_measure(2, {"tau": 1.5})
    (folder / "drafters" / "mine").mkdir(parents=True)
    curve.save(folder / "drafters" / "mine")
    flags = {"--bench": whole, "--drafters": folder / "drafters", "--out": folder / "published" / "page.html"}
    monkeypatch.setattr("sys.argv", ["publish", *(str(part) for pair in flags.items() for part in pair)])
    publish.main()
    page = (folder / "published" / "page.html").read_text(encoding="utf-8")
    assert "Training of mine: loss and held-out tau" in page and "Acceptance by depth" in page
    assert "Tokens per target pass over nodes" in page and 'src="http' not in page


def test_a_second_bench_adds_its_sweep_to_the_page(folder: Path, whole: Path, compared: Path, monkeypatch):
    (folder / "none" / "mine").mkdir(parents=True)
    Curve().save(folder / "none" / "mine")
    flags = {"--bench": compared, "--sweep": whole, "--drafters": folder / "none", "--out": folder / "both.html"}
    monkeypatch.setattr("sys.argv", ["publish", *(str(part) for pair in flags.items() for part in pair)])
    publish.main()
    page = (folder / "both.html").read_text(encoding="utf-8")
    assert "Misses by reason" in page and "Speed over nodes" in page


def test_every_table_of_the_markdown_is_rectangular(whole: Path):
    blocks = (whole / "report.md").read_text(encoding="utf-8").split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert tables
    for table in tables:
        assert len({line.count("|") for line in table}) == 1


@pytest.fixture(scope="module")
def compared(folder: Path) -> Path:
    """Two checkpoints of one method, with their misses."""
    paths = ["--lane", f"old={folder / 'head0'}", "--lane", f"new={folder / 'head1'}"]
    assert bench(folder, "compared", "--methods", "eagle3", "--no-peers", "--nodes", "4", *paths) == 0
    return folder / "compared"


def test_misses_are_those_of_the_traces(compared: Path):
    report = read_report(compared)
    assert list(report.misses) == ["old nodes=4", "new nodes=4"]
    for name, misses in report.misses.items():
        runs = [load_trace(compared / record.trace) for record in read_records(compared) if record.lane == name]
        reasons = [node.miss.reason for run in runs for step in run.steps for node in step.nodes if node.miss]
        assert misses.total.n_misses == len(reasons) > 0
        for reason, count in misses.by["reason"].items():
            assert count.n_misses == reasons.count(reason)
        for values in misses.by.values():
            assert sum(count.n_misses for count in values.values()) == len(reasons)


def test_every_miss_is_linked_to_its_trace(compared: Path):
    lines = (compared / "misses.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith(("| old", "| new"))]
    assert len(rows) == sum(misses.total.n_misses for misses in read_report(compared).misses.values())
    assert len({row.count("|") for row in rows}) == 1
    for row in rows:
        step, path = int(row.split(" | ")[3]), row.split("](")[1].split(")")[0]
        assert any(node.miss for node in load_trace(compared / path).steps[step].nodes)


def test_weights_that_changed_under_a_lane_s_name_are_noticed(folder: Path, compared: Path, target: Target, capsys):
    save_head(folder / "head2", target, 2)
    paths = ["--lane", f"old={folder / 'head0'}", "--lane", f"new={folder / 'head2'}"]
    assert bench(folder, "compared", "--methods", "eagle3", "--no-peers", "--nodes", "4", *paths) == 2
    assert "another lane new nodes=4" in capsys.readouterr().err


def test_an_assistant_drafts_for_generate(folder: Path):
    """The target as its own assistant: every draft is right, so passes are fewer than tokens."""
    assistant = ["--assistant", str(folder / "tiny")]
    assert bench(folder, "assisted", "--methods", "plain", "--n", "1", *assistant) == 0
    peer = read_report(folder / "assisted").lanes["generate, assisted"].overall
    assert peer.exactness == {"equal": 1} and peer.tau > 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "medusa"], "no method 'medusa'"),
        (["--methods", ""], "no method ''"),
        (["--methods", "lookahead", "--nodes", "8"], "--nodes is a setting of eagle3 and confu"),
        (["--methods", "lookahead", "--k", "0"], "K should be"),
        (["--methods", "lookahead,eagle3", "--lane", "a=b"], "one method"),
        (["--methods", "eagle3", "--lane", "a"], "NAME=PATH"),
        (["--methods", "eagle3", "--lane", "a=b", "--lane", "a=c"], "twice"),
        (["--methods", "eagle3", "--lane", "plain=b"], "two lanes called 'plain'"),
        (["--methods", "eagle3", "--lane", "a=/no/such/folder"], "no drafter folder"),
        (["--methods", "eagle3", "--drafter", "confu=b"], "no drafting method of this bench"),
        (["--methods", "plain", "--n", "0"], "--n must be at least 1"),
        (["--methods", "plain", "--batch", "2", "--temperature", "1"], "--batch decodes greedily"),
    ],
)
def test_a_mistake_is_a_sentence_and_status_2(folder: Path, arguments, words, capsys):
    assert bench(folder, "mistakes", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error


def test_a_sampled_answer_is_the_plain_lane_s_too(folder: Path):
    arguments = ["--methods", "lookahead", "--no-peers", "--n", "2", "--temperature", "0.9", "--seed", "3"]
    assert bench(folder, "sampled", *arguments) == 0
    assert read_report(folder / "sampled").lanes["lookahead"].overall.exactness == {"equal": 2}


def test_questions_decoded_together_answer_the_same(folder: Path, whole: Path):
    assert bench(folder, "batch", "--methods", "lookahead", "--no-peers", "--batch", "3") == 0
    assert read_report(folder / "batch").lanes["lookahead"].overall.exactness == {"equal": 3}


def test_a_lossy_lane_is_named(folder: Path):
    arguments = ["--methods", "lookahead", "--no-peers", "--n", "1", "--selection", "self-consistent"]
    assert bench(folder, "lossy", *arguments) == 0
    assert any(notice.startswith("Lossy") for notice in read_report(folder / "lossy").notices)


def test_experts_are_counted_by_category(folder: Path, target: Target):
    loaded = random_head(target)
    save_confu(folder / "confu", loaded, random_parts(target, loaded))
    assert bench(folder, "experts", "--methods", "eagle3,confu", "--drafter", f"confu={folder / 'confu'}") == 0
    report = read_report(folder / "experts")
    assert list(report.experts) == ["confu"] and list(report.experts["confu"]) == ["con", "f"]
    usages = report.experts["confu"]["con"]
    assert list(usages) == report.categories
    runs = [load_trace(folder / "experts" / r.trace) for r in read_records(folder / "experts") if r.lane == "confu"]
    routed = sum(routing.site == "con" for run in runs for step in run.steps for routing in step.routing)
    assert sum(usage.n_routings for usage in usages.values()) == routed > 0
    figures = build_figures(report)
    drawn = Figure(figures["Experts by category: confu, con"]).data[0].z
    assert list(drawn[0]) == [round(share, 4) for share in usages["writing"].shares]
    table = (folder / "experts" / "report.md").read_text(encoding="utf-8")
    assert "| experts at work | confu, con | confu, f |" in table and "| context |" in table
