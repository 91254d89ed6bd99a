"""`python -m specviz train`: the corpus, and the drafters that are trained on it."""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz import terminal
from specviz.commands.arguments import add_model
from specviz.commands.train_corpus import add_corpus, make_corpus
from specviz.commands.train_shape import asked_shape, settle_shape, slot_attention
from specviz.errors import SpecVizError

if TYPE_CHECKING:
    from specviz.target.model import Target
    from specviz.training.corpus import Answer
    from specviz.training.features import FeatureStore

HELP = "make a corpus of the target's own answers, and train drafters on it"
MEASURED_ANSWERS = 48
AT_LEAST_ONE = (
    *("steps", "batch_tokens", "measure_every", "save_every", "k", "stride", "unroll", "draft_vocabulary"),
    *("experts", "selected_experts", "anchor_stride", "replication", "max_lag"),
)
NOT_NOTED = ("corpus", "out", "parent", "device", "features")


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add the subcommands of `train`."""
    what = train.add_subparsers(dest="what", required=True)
    add_corpus(what.add_parser("corpus", help="answers of the target to prompts of a file and to its own"))
    _add_lookahead(what.add_parser("lookahead", help="learned slots for lookahead"))
    _add_eagle3(what.add_parser("eagle3", help="an EAGLE-3 head"))
    _add_confu(what.add_parser("confu", help="ConFu's parts, from an EAGLE-3 head (--from)"))
    _add_average(what.add_parser("average", help="the mean of a drafter's weights at several moments of its training"))


def start(parsed: dict[str, Any]) -> int:
    """Run one of the subcommands."""
    trainings = {"lookahead": _train_lookahead, "eagle3": _train_eagle3, "confu": _train_confu}
    parsed["method"] = parsed.pop("what")
    if parsed["method"] in trainings:
        _check_numbers(parsed)
        _check_folder(parsed["out"], parsed["parent"])
    return ({"corpus": make_corpus, "average": _average} | trainings)[parsed["method"]](parsed)


def _check_numbers(parsed: dict[str, Any]) -> None:
    """Tell a number that nothing can be trained with, before anything is read."""
    for name in set(AT_LEAST_ONE) & set(parsed):
        if parsed[name] is not None and parsed[name] < 1:
            raise SpecVizError(f"--{name.replace('_', '-')} must be at least 1, not {parsed[name]}.")
    for name in {"prefix", "soft", "warm_up"} & set(parsed):
        if parsed[name] is not None and parsed[name] < 0:
            raise SpecVizError(f"--{name.replace('_', '-')} must not be negative.")
    if parsed["learning_rate"] is not None and not 0 < parsed["learning_rate"] < 1:
        raise SpecVizError(f"--learning-rate must lie between 0 and 1, not {parsed['learning_rate']}.")
    if parsed["cool_down"] is not None and not 0 <= parsed["cool_down"] <= 1:
        raise SpecVizError(f"--cool-down is a share of the run, between 0 and 1, not {parsed['cool_down']}.")
    shape = asked_shape(parsed)
    if shape.get("selected_experts", 0) > shape.get("experts", 0):
        raise SpecVizError(f"{shape['selected_experts']} of {shape['experts']} experts cannot be selected.")


def _check_folder(out: Path, parent: str | None) -> None:
    """Refuse to write over the weights that a training starts from: who resumes it needs them as they were."""
    folder = Path(parent).expanduser() if parent else None
    if folder and folder.is_dir() and out.exists() and out.samefile(folder):
        raise SpecVizError(f"{out} holds the weights of --from: a training needs an --out folder of its own.")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--corpus", required=True, nargs="+", type=Path, metavar="PATH", help="answers, see train corpus"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the drafter; a run in it is resumed")
    parser.add_argument("--from", dest="parent", metavar="DRAFTER", help="go on from these weights")
    add_model(parser)
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


def _add_lookahead(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    slots = parser.add_argument_group("the slots")
    slots.add_argument("--k", type=int, metavar="K", help="slots in a group (8)")
    slots.add_argument("--prefix", type=int, metavar="S", help="keys and values that slots alone see (0)")
    slots.add_argument("--slot-attention", choices=("causal", "diagonal"))
    slots.add_argument("--stride", type=int, default=8, metavar="N", help="one group in N tokens of an answer")
    slots.add_argument("--decay", type=float, default=0.8, metavar="X", help="how much less each further slot weighs")


def _add_eagle3(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    _add_head(parser)
    parser.add_argument("--draft-vocabulary", type=int, metavar="N", help="tokens the head can draft (8000)")


def _add_confu(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    _add_head(parser)
    confu = parser.add_argument_group("ConFu")
    confu.add_argument("--soft", type=int, metavar="S", help="rows of the soft prompt (16)")
    confu.add_argument("--experts", type=int, metavar="E", help="of each router (8)")
    confu.add_argument("--selected-experts", type=int, metavar="K", help="that a router mixes (2)")
    confu.add_argument("--anchor-stride", type=int, default=4, metavar="N", help="one anchor in N tokens")
    confu.add_argument("--replication", type=int, default=4, metavar="L", help="rows that an anchor's f serves")
    confu.add_argument("--max-lag", type=int, default=7, metavar="N", help="of what routes a contemplate token")


def _add_average(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("drafters", nargs="+", metavar="FOLDER", help="from one line of training, the last one last")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")


def _average(parsed: dict[str, Any]) -> int:
    from specviz.training.averaging import average_drafters

    average_drafters(parsed["drafters"], parsed["out"])
    print(f"the mean of {len(parsed['drafters'])} drafters is in {parsed['out']}")
    return 0


def _add_head(parser: argparse.ArgumentParser) -> None:
    head = parser.add_argument_group("the head")
    head.add_argument("--unroll", type=int, default=4, metavar="STEPS", help="steps of the training-time test")
    head.add_argument("--decay", type=float, default=0.8, metavar="X", help="how much less each further step weighs")


def _train_eagle3(parsed: dict[str, Any]) -> int:
    from specviz.drafters.checkpoint_eagle3 import load_eagle3, start_eagle3
    from specviz.training.eagle3 import Eagle3Trainee, UnrollConfig, count_vocabulary

    trained, measured = _split(parsed["corpus"])
    target = _load_target(parsed)
    if parsed["parent"]:
        loaded = load_eagle3(parsed["parent"], target)
    else:
        vocabulary = count_vocabulary(trained, asked_shape(parsed)["draft_vocabulary"], target.vocab_size)
        loaded = start_eagle3(target, vocabulary, parsed["seed"] or 0)
    settle_shape(parsed, {"draft_vocabulary": loaded.vocabulary.n_draft})
    stores = _stores(parsed, trained, measured, target, loaded.head.config.feature_layers)
    return _run(Eagle3Trainee(target, loaded, stores, UnrollConfig(parsed["unroll"], parsed["decay"])), parsed)


def _train_confu(parsed: dict[str, Any]) -> int:
    from specviz.drafters.checkpoint_confu import load_confu
    from specviz.drafters.confu import ConfuConfig
    from specviz.drafters.expert_embedding import ExpertConfig
    from specviz.training.anchors import AnchorConfig
    from specviz.training.confu import ConfuTrainee, ConfuTrainingConfig
    from specviz.training.eagle3 import UnrollConfig

    if not parsed["parent"]:
        raise SpecVizError("ConFu starts from a trained head: give an EAGLE-3 or a ConFu drafter with --from.")
    trained, measured = _split(parsed["corpus"])
    target = _load_target(parsed)
    shape = asked_shape(parsed)
    size = ConfuConfig(shape["soft"], ExpertConfig(shape["experts"], shape["selected_experts"]))
    loaded, parts = load_confu(parsed["parent"], target, size)
    experts = parts.config.experts
    settle_shape(
        parsed,
        {"soft": parts.config.n_soft, "experts": experts.n_experts, "selected_experts": experts.n_selected},
    )
    stores = _stores(parsed, trained, measured, target, loaded.head.config.feature_layers)
    config = ConfuTrainingConfig(
        UnrollConfig(parsed["unroll"], parsed["decay"]),
        AnchorConfig(parsed["anchor_stride"], parsed["replication"]),
        parsed["max_lag"],
    )
    return _run(ConfuTrainee(target, loaded, parts, stores, config), parsed)


def _train_lookahead(parsed: dict[str, Any]) -> int:
    from specviz.drafters.checkpoint import load_slot_table
    from specviz.training.lookahead import SlotModule, SlotTrainee, SlotTrainingConfig, start_slots

    trained, measured = _split(parsed["corpus"])
    target = _load_target(parsed)
    shape = asked_shape(parsed)
    if parsed["parent"]:
        table, _ = load_slot_table(parsed["parent"], target)
        shape = {"k": len(table.slots), "prefix": table.n_prefix, "slot_attention": slot_attention(parsed["parent"])}
    settle_shape(parsed, shape)
    causal = parsed["slot_attention"] == "causal"
    config = SlotTrainingConfig(parsed["k"], parsed["prefix"], causal, parsed["decay"], parsed["stride"])
    if parsed["parent"]:
        module = SlotModule(table.slots, table.prefix)
    else:
        module = start_slots(target, config, parsed["seed"] or 0)
    stores = _stores(parsed, trained, measured, target, tuple(sorted(target.feature_layers)))
    return _run(SlotTrainee(target, module, stores, config), parsed)


def _load_target(parsed: dict[str, Any]) -> Target:
    """Load the target, whole and on this process's own GPU where `accelerate launch` started several."""
    import torch
    from transformers.utils import logging

    from specviz.target.loading import load_target
    from specviz.training.allocator import keep_freed_memory

    keep_freed_memory()
    logging.disable_progress_bar()
    device, rank = parsed["device"], os.environ.get("LOCAL_RANK")
    if rank is not None and device != "cpu" and torch.cuda.is_available():
        if int(rank) >= torch.cuda.device_count():
            raise SpecVizError(
                f"Each process needs a GPU of its own, and this machine has {torch.cuda.device_count()}: start no more "
                "processes than that, or train with --device cpu."
            )
        device = f"cuda:{rank}"
        torch.cuda.set_device(int(rank))
    return load_target(parsed["model"], device, parsed["dtype"], progress=terminal.tell)


def _split(paths: list[Path]) -> tuple[list[Answer], list[Answer]]:
    from specviz.training.corpus import read_corpus
    from specviz.training.plan import split_corpus

    trained, measured = split_corpus(read_corpus(paths), MEASURED_ANSWERS)
    if not trained or not measured:
        raise SpecVizError(
            f"The corpus leaves {len(trained)} answers to train on and {len(measured)} greedy ones to measure."
        )
    return trained, measured


def _stores(
    parsed: dict[str, Any], trained: list[Answer], measured: list[Answer], target: Target, layers: tuple[int, ...]
) -> tuple[FeatureStore, FeatureStore]:
    from specviz.target.bundled import cache_root
    from specviz.training.features import FeatureStore

    folder = parsed["features"] or cache_root() / "features"
    return FeatureStore(folder, trained, target, layers), FeatureStore(folder, measured, target, layers)


def _run(trainee: Any, parsed: dict[str, Any]) -> int:
    from specviz.training.card import write_card
    from specviz.training.loop import Training, TrainingConfig

    chosen = {f.name: parsed[f.name] for f in fields(TrainingConfig) if parsed.get(f.name) is not None}
    config, notes, conditions = TrainingConfig(**chosen), _notes(trainee, parsed), _conditions(trainee, parsed)
    training = Training(trainee, config, parsed["out"], notes, write_card, conditions)
    curve = training.run()
    print(f"{curve.summary()}; the drafter is in {parsed['out']}")
    return 0


def _conditions(trainee: Any, parsed: dict[str, Any]) -> dict[str, Any]:
    """Return what a run depends on beside the configuration of its loop: who resumes it must ask for the same."""
    from specviz.drafters.checkpoint_files import digest_drafter, locate_drafter
    from specviz.training.corpus import digest_answers
    from specviz.training.loop import TrainingConfig

    of_the_loop = {f.name for f in fields(TrainingConfig)}
    own = {key: value for key, value in parsed.items() if key not in {*NOT_NOTED, *of_the_loop, "model", "dtype"}}
    info = trainee.target.info
    return own | {
        "target": {"name": info.name, "revision": info.revision, "dtype": info.dtype},
        "corpus": digest_answers([*trainee.store.answers, *trainee.held_out.answers]),
        "parent": digest_drafter(locate_drafter(parsed["parent"])) if parsed["parent"] else None,
    }


def _notes(trainee: Any, parsed: dict[str, Any]) -> dict[str, Any]:
    """Return what the drafter's card says beside the configuration; names of files, never where they lie."""
    from specviz.drafters.checkpoint_files import locate_drafter
    from specviz.training.card import hardware
    from specviz.training.lineage import earlier_trainings

    own = {key: value for key, value in parsed.items() if key not in NOT_NOTED}
    return own | {
        "target": trainee.target.info.name,
        "answers": len(trainee.lengths),
        "answer_tokens": sum(trainee.lengths),
        "corpus": [path.name for path in parsed["corpus"]],
        "parent": Path(parsed["parent"]).name if parsed["parent"] else None,
        "history": earlier_trainings(locate_drafter(parsed["parent"])) if parsed["parent"] else [],
        "hardware": hardware(),
    }
