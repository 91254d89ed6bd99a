"""`python -m specviz train corpus`: answers of the target itself, for drafters to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz import terminal
from specviz.commands.arguments import add_model
from specviz.errors import SpecVizError

if TYPE_CHECKING:
    from specviz.training.corpus_making import CorpusMaker, CorpusSettings


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train corpus`."""
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the corpus; the same one resumes")
    parser.add_argument("--answers", type=int, default=4000, metavar="N", help="answers in all; raise it to go on")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="prompts to answer: `source` and `prompt` a line")
    parser.add_argument(
        "--evaluation", type=Path, nargs="+", default=[], metavar="FILE", help="questions that must not be trained on"
    )
    parser.add_argument(
        "--known", type=Path, nargs="+", default=[], metavar="PATH", help="corpora whose answers are not made again"
    )
    parser.add_argument("--self-written", type=float, default=0.5, metavar="SHARE", help="prompts by the target itself")
    parser.add_argument("--openings", type=Path, metavar="FILE", help="first words of self-written prompts, one a line")
    parser.add_argument("--max-new-tokens", type=int, default=280, metavar="N")
    parser.add_argument("--max-prompt-tokens", type=int, default=220, metavar="N", help="chat template included")
    parser.add_argument("--max-written-tokens", type=int, default=240, metavar="N", help="of a self-written prompt")
    parser.add_argument("--batch", type=int, default=64, metavar="N", help="texts in a pass")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--gzip", action="store_true", help="compress the answers")
    add_model(parser)


def make_corpus(parsed: dict[str, Any]) -> int:
    """Make the corpus, or what is missing of it, and print what it holds; Ctrl-C keeps what there is."""
    settings = _settings(parsed)  # mistakes are told before a model is loaded
    if not settings.evaluation:
        terminal.tell("No evaluation questions were given (--evaluation): no prompt is checked against any.")
    from transformers.utils import logging

    from specviz.target.loading import load_target
    from specviz.training.corpus_making import CorpusMaker

    logging.disable_progress_bar()
    target = load_target(parsed["model"], parsed["device"], parsed["dtype"], progress=terminal.tell)
    maker = CorpusMaker(target, settings)
    if maker.n_wanted < settings.n_answers:
        terminal.tell(f"The prompts suffice for {maker.n_wanted:,} answers.")
    stopped = _watch(maker)
    print(_report(maker, target.eos_ids))
    if stopped:
        print("Stopped: the same command goes on from here.")
    return 0


def _settings(parsed: dict[str, Any]) -> CorpusSettings:
    from specviz.training.corpus_making import CorpusSettings
    from specviz.training.openings import OPENINGS

    return CorpusSettings(
        out=parsed["out"],
        n_answers=parsed["answers"],
        prompts=parsed["prompts"],
        evaluation=tuple(parsed["evaluation"]),
        known=tuple(parsed["known"]),
        self_written=parsed["self_written"],
        openings=OPENINGS if parsed["openings"] is None else _read_openings(parsed["openings"]),
        max_new_tokens=parsed["max_new_tokens"],
        max_prompt_tokens=parsed["max_prompt_tokens"],
        max_written_tokens=parsed["max_written_tokens"],
        n_places=parsed["batch"],
        seed=parsed["seed"],
        compressed=parsed["gzip"],
    )


def _read_openings(path: Path) -> tuple[str, ...]:
    try:
        return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecVizError(f"The openings file {path} could not be read: {error}.") from None


def _watch(maker: CorpusMaker) -> bool:
    """Show the progress until the corpus is whole; return whether it was stopped before."""
    from tqdm import tqdm

    with tqdm(total=maker.n_wanted, initial=maker.n_done, unit="answer", desc="corpus") as bar:
        try:
            for _ in maker.make():
                load = maker.load
                bar.set_postfix_str(
                    f"{load.tokens_per_second:.0f} tokens/s, {load.tokens_per_pass:.1f} a pass", refresh=False
                )
                bar.update()
        except KeyboardInterrupt:
            return True
    return False


def _report(maker: CorpusMaker, eos_ids: frozenset[int]) -> str:
    from specviz.training.corpus_summary import summarise_corpus, summarise_dropped

    load = maker.load
    return "\n".join(
        [
            summarise_corpus(maker.answers(), eos_ids),
            summarise_dropped(maker.gate.dropped),
            f"This run: {load.n_tokens:,} tokens (prompts written included) in {load.n_passes:,} passes, "
            f"{load.tokens_per_pass:.1f} a pass, beside {load.n_prompts:,} prompts of {load.n_prompt_rows:,} tokens; "
            f"{load.tokens_per_second:.0f} tokens per second.",
        ]
    )
