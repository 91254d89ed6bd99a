"""The bench: lanes and peers over questions in one process, and the report of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from specviz.conditions import hold_conditions
from specviz.decoding.engine import Engine
from specviz.decoding.job import VERSIONED
from specviz.drafters.build import default_settings
from specviz.drafters.checkpoint_files import digest_drafter, locate_drafter
from specviz.errors import SpecVizError
from specviz.evaluation.lanes import EngineLane, Lane, Runner
from specviz.evaluation.output import write_report
from specviz.evaluation.peers import ASSISTED, build_peers
from specviz.evaluation.plan import PlannedLane
from specviz.evaluation.questions import Question, digest_questions
from specviz.evaluation.report import LaneHead, Report, build_report
from specviz.settings import Method, RunSettings, make_settings
from specviz.target.loading import load_target
from specviz.target.model import Target

NEED_WEIGHTS: tuple[Method, ...] = ("eagle3", "confu")


@dataclass(frozen=True)
class BenchRequest:
    """What a bench is asked to do.

    `common` are the settings that all lanes share (`RunSettings`' names, without method, model, device and dtype);
    `assistant` names the smaller model of transformers' assisted decoding.
    """

    questions: Sequence[Question]
    lanes: Sequence[PlannedLane]
    out: Path
    model: str = "bundled"
    device: str = "auto"
    dtype: str = "auto"
    common: Mapping[str, Any] = field(default_factory=dict)
    peers: bool = True
    assistant: str | None = None
    batch: int = 1
    cuda_graphs: bool = False


def run_bench(request: BenchRequest, progress: Callable[[str], None] = print) -> tuple[Report, list[Path]]:
    """Run what is missing in the request's folder; return the report on all of it, and the files written."""
    drafters = list(dict.fromkeys(lane.drafter for lane in request.lanes if lane.drafter is not None))
    engine = Engine([request.model], drafters, request.device, request.dtype, progress, request.cuda_graphs)
    settings = _lane_settings(request, engine.model_names[0], dict(zip(drafters, engine.drafter_names, strict=True)))
    plain = next(iter(settings.values()))
    target = engine.target(engine.model_names[0])
    heads = {lane.name: _lane_head(engine, target, lane, settings[lane.name]) for lane in request.lanes}
    questions, notices = _fitting(request.questions, target, plain.raw)
    peers = _peers(request, target, plain, progress)
    heads |= {name: _peer_head(request, name) for name in peers}
    hold_conditions(request.out, _conditions(request, target, heads, plain, questions))

    lanes: dict[str, Lane] = {name: EngineLane(engine, own) for name, own in settings.items()}
    runner = Runner(target, request.out, greedy=plain.temperature == 0, batch=request.batch)
    records = runner.run({**lanes, **peers}, questions)
    report = build_report(target.info, plain, heads, records, notices + _lane_notices(heads, settings))
    return report, write_report(request.out, report, records)


def _lane_settings(request: BenchRequest, model: str, names: Mapping[str, str]) -> dict[str, RunSettings]:
    """Return each lane's settings, checked; `names` are the engine's names of the drafters."""
    return {
        lane.name: make_settings(
            method=lane.method,
            model=model,
            drafter=None if lane.drafter is None else names[lane.drafter],
            **lane.asked,
            **request.common,
        )
        for lane in request.lanes
    }


def _lane_head(engine: Engine, target: Target, lane: PlannedLane, settings: RunSettings) -> LaneHead:
    """Describe a lane by what it will run: settings with their defaults, and the digest of its weights."""
    checkpoint = engine.find_checkpoint(settings, target)
    resolved = settings.resolved(default_settings(settings, checkpoint))
    weights = None if checkpoint is None else digest_drafter(locate_drafter(checkpoint))
    own = {name: value for name, value in resolved.model_dump(mode="json").items() if value is not None}
    return LaneHead(stem=lane.stem, method=lane.method, settings=own, asked=lane.asked, weights=weights)


def _peers(
    request: BenchRequest, target: Target, plain: RunSettings, progress: Callable[[str], None]
) -> Mapping[str, Lane]:
    if not request.peers:
        return {}
    assistant = None
    if request.assistant is not None:
        assistant = load_target(request.assistant, request.device, request.dtype, progress)
    return build_peers(target, plain, assistant)


def _peer_head(request: BenchRequest, name: str) -> LaneHead:
    return LaneHead(stem=name, method="peer", settings={"assistant": request.assistant} if name == ASSISTED else {})


def _fitting(questions: Sequence[Question], target: Target, raw: bool) -> tuple[list[Question], list[str]]:
    """Return the questions that the target's context holds, and a notice on the others."""
    encode = target.tokenizer.encode if raw else target.tokenizer.encode_chat
    fitting = [question for question in questions if len(encode(question.prompt)) < target.n_positions]
    n_long = len(questions) - len(fitting)
    if not fitting:
        raise SpecVizError(f"No question is short enough for this model's context of {target.n_positions} tokens.")
    return fitting, [f"{n_long} questions are too long for this model's context and were left out."] if n_long else []


def _conditions(
    request: BenchRequest,
    target: Target,
    heads: Mapping[str, LaneHead],
    plain: RunSettings,
    questions: Sequence[Question],
) -> dict[str, Any]:
    """Return what a later run in the same folder must share."""
    return {
        "model": target.info.model_dump(mode="json"),
        "library": {name: version(name) for name in VERSIONED},
        "batch": request.batch,
        "setting": plain.model_dump(mode="json", exclude_none=True),
        **{f"lane {name}": head.model_dump(mode="json") for name, head in heads.items()},
        **digest_questions(questions),
    }


def _lane_notices(heads: Mapping[str, LaneHead], settings: Mapping[str, RunSettings]) -> list[str]:
    random = [name for name, head in heads.items() if head.method in NEED_WEIGHTS and head.weights is None]
    lossy = [name for name, own in settings.items() if not own.exact]
    sentences = {
        "Random weights, so proposals are noise": random,
        "Lossy by design, so answers may depart from plain decoding's": lossy,
    }
    return [f"{sentence}: {', '.join(names)}." for sentence, names in sentences.items() if names]
