"""`python -m specviz train`: the corpus, and the drafters that are trained on it."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz.errors import SpecVizError

if TYPE_CHECKING:
    from specviz.target.model import Target
    from specviz.training.corpus import Answer

HELP = "make a corpus of the target's own answers, and train drafters on it"
MEASURED_ANSWERS = 48


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add the subcommands of `train`."""
    what = train.add_subparsers(dest="what", required=True)
    _add_eagle3(what.add_parser("eagle3", help="an EAGLE-3 head"))


def start(parsed: dict[str, Any]) -> int:
    """Run one of the subcommands."""
    return {"eagle3": _train_eagle3}[parsed.pop("what")](parsed)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus", required=True, nargs="+", type=Path, metavar="PATH", help="answers, see train corpus"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the drafter; a run in it is resumed")
    parser.add_argument("--from", dest="parent", metavar="DRAFTER", help="go on from these weights")
    parser.add_argument("--model", default="bundled", help="bundled, a hub id, a folder or a .gguf file")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"))
    parser.add_argument("--features", type=Path, metavar="FOLDER", help="where the target's features are kept")
    run = parser.add_argument_group("the run")
    run.add_argument("--steps", type=int, required=True, metavar="N")
    run.add_argument("--batch-tokens", type=int, metavar="N", help="answer tokens of a step and process")
    run.add_argument("--learning-rate", type=float, metavar="X")
    run.add_argument("--warm-up", type=int, metavar="STEPS")
    run.add_argument("--cool-down", type=float, metavar="SHARE", help="of the run, in which the rate falls to zero")
    run.add_argument("--measure-every", type=int, metavar="STEPS")
    run.add_argument("--save-every", type=int, metavar="STEPS")
    run.add_argument("--seed", type=int, metavar="S")


def _add_eagle3(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    head = parser.add_argument_group("the head")
    head.add_argument("--draft-vocabulary", type=int, default=8000, metavar="N", help="tokens it can draft")
    head.add_argument("--unroll", type=int, default=4, metavar="STEPS", help="steps of the training-time test")
    head.add_argument("--decay", type=float, default=0.8, metavar="X", help="how much less each further step weighs")


def _train_eagle3(parsed: dict[str, Any]) -> int:
    from specviz.drafters.checkpoint_eagle3 import load_eagle3, start_eagle3
    from specviz.training.eagle3 import Eagle3Trainee, UnrollConfig, count_vocabulary

    target = _load_target(parsed)
    trained, measured = _split(parsed["corpus"])
    if parsed["parent"]:
        loaded = load_eagle3(parsed["parent"], target)
    else:
        vocabulary = count_vocabulary(trained, parsed["draft_vocabulary"], target.vocab_size)
        loaded = start_eagle3(target, vocabulary, parsed["seed"] or 0)
    stores = _stores(parsed, [trained, measured], target, loaded.head.config.feature_layers)
    return _run(Eagle3Trainee(target, loaded, *stores, UnrollConfig(parsed["unroll"], parsed["decay"])), parsed)


def _load_target(parsed: dict[str, Any]) -> Target:
    from specviz.decoding.engine import Engine

    engine = Engine([parsed["model"]], device=parsed["device"], dtype=parsed["dtype"])
    return engine.target(engine.model_names[0])


def _split(paths: list[Path]) -> tuple[list[Answer], list[Answer]]:
    from specviz.training.corpus import read_corpus
    from specviz.training.plan import split_corpus

    trained, measured = split_corpus(read_corpus(paths), MEASURED_ANSWERS)
    if not trained or not measured:
        raise SpecVizError(
            f"The corpus leaves {len(trained)} answers to train on and {len(measured)} greedy ones to measure."
        )
    return trained, measured


def _stores(parsed: dict[str, Any], parts: list[list[Answer]], target: Target, layers: tuple[int, ...]) -> list[Any]:
    from specviz.target.bundled import cache_root
    from specviz.training.features import FeatureStore

    folder = parsed["features"] or cache_root() / "features"
    return [FeatureStore(folder, part, target, layers) for part in parts]


def _run(trainee: Any, parsed: dict[str, Any]) -> int:
    from specviz.training.loop import Training, TrainingConfig

    chosen = {f.name: parsed[f.name] for f in fields(TrainingConfig) if parsed.get(f.name) is not None}
    notes = {key: str(parsed[key]) for key in ("model", "parent") if parsed[key]}
    notes |= {"corpus": [path.name for path in parsed["corpus"]]}
    training = Training(trainee, TrainingConfig(**chosen), parsed["out"], notes)
    curve = training.run()
    print(f"{curve.summary()}; the drafter is in {parsed['out']}")
    return 0
