"""Prompts over long passages: summaries, and questions over one to three texts.

Prompts of a line or two leave a drafter without practice in what stands far back. `python -m specviz.training.passages
--corpus PATH --texts FILE … --out prompts.jsonl` makes prompts for `train corpus --prompts` from answers that the
target wrote earlier and from plain-text files; `train corpus --max-prompt-tokens 1300` admits them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from specviz import terminal
from specviz.errors import SpecVizError, exit_status
from specviz.target.loading import load_target
from specviz.training.corpus import Answer, read_corpus

QUESTION_SHARE = 1 / 3
OWN_SHARE = 0.5  # of the passages, where there are texts from files too
SUMMARY_CHARACTERS, QUESTION_CHARACTERS = (1500, 4200), (500, 1400)
SENTENCES_OF_A_PIECE = 4
SHORTEST_ANSWER = 120  # tokens
MOST_DIGITS = 0.015  # of the characters: sums are no passages
SUMMARISE = ("Summarize: ",) * 4 + (
    "Summarize the following text:\n\n",
    "Give a short summary: ",
    "Summarize this article in three sentences: ",
)
QUESTIONS = (
    "What is the text about?",
    "Who is the text written for?",
    "What is the main idea?",
    "What happens at the end?",
    "Who is mentioned first?",
    "Which problem is described?",
    "What does the author want?",
    "When did it happen?",
    "Where does it take place?",
    "What is the first example?",
    "Why is this important?",
    "How many reasons are given?",
    "What should be done next?",
    "What is the name of the main person?",
    "Which country is it about?",
    "What was the result?",
    "What are the benefits named?",
    "how did it begin",
    "what is said about the people",
    "who is responsible for it",
)

Document = Sequence[str]  # pieces of one text, in order


def make_prompts(own: Document, files: Sequence[Document], n_prompts: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (source, prompt): passages of the target's own answers in any order, of files in theirs."""
    draw = random.Random(seed)
    for _ in range(n_prompts):
        if draw.random() < QUESTION_SHARE:
            passages = [_passage(own, files, QUESTION_CHARACTERS, draw) for _ in range(draw.choice((1, 2, 3)))]
            yield "passage-question", "\n".join([*passages, draw.choice(QUESTIONS)])
        else:
            yield "passage-summary", draw.choice(SUMMARISE) + _passage(own, files, SUMMARY_CHARACTERS, draw)


def own_pieces(answers: Sequence[Answer], decode: Callable[[Sequence[int]], str]) -> list[str]:
    """Return the texts of answers that are long, made of words, and not drawn at a high temperature."""
    texts = (decode(answer.answer_ids) for answer in answers if _is_long_and_calm(answer))
    return [_one_line(text) for text in texts if "```" not in text and _share_of_digits(text) < MOST_DIGITS]


def pieces_of(text: str) -> list[str]:
    """Cut a text into pieces of a few sentences."""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z])", _one_line(text))
    starts = range(0, len(sentences), SENTENCES_OF_A_PIECE)
    return [" ".join(sentences[start : start + SENTENCES_OF_A_PIECE]) for start in starts]


def save_prompts(path: Path, prompts: Sequence[tuple[str, str]]) -> None:
    """Write (source, prompt) as `train corpus --prompts` reads them."""
    lines = (json.dumps({"source": source, "prompt": prompt}) for source, prompt in prompts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise SpecVizError(f"The prompts could not be written to {path}: {error.strerror}.") from None


def _passage(own: Document, files: Sequence[Document], span: tuple[int, int], draw: random.Random) -> str:
    least, most = draw.randint(*span), span[1]
    if own and (not files or draw.random() < OWN_SHARE):
        pieces = iter(lambda: draw.choice(own), None)
    else:
        document = draw.choice(files)
        pieces = iter(document[draw.randrange(len(document)) :])
    passage = ""
    while len(passage) < least and (piece := next(pieces, None)) is not None:
        passage += f" {piece}"
    return passage.strip()[:most]


def _is_long_and_calm(answer: Answer) -> bool:
    return len(answer.answer_ids) >= SHORTEST_ANSWER and answer.temperature < 1


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _share_of_digits(text: str) -> float:
    return sum(character.isdigit() for character in text) / max(len(text), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, nargs="+", type=Path, help="answers of the target")
    parser.add_argument("--texts", nargs="+", default=[], type=Path, metavar="FILE", help="plain text, UTF-8")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    parser.add_argument("--prompts", type=int, default=800, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="bundled")
    chosen = parser.parse_args()
    return exit_status(lambda: _write(chosen))


def _write(chosen: argparse.Namespace) -> None:
    if chosen.prompts < 1:
        raise SpecVizError(f"At least 1 prompt is needed, not {chosen.prompts}.")
    answers, files = read_corpus(chosen.corpus), [pieces_of(_read(path)) for path in chosen.texts]
    decode = load_target(chosen.model, "auto", "auto", progress=terminal.tell).tokenizer.decode
    own = own_pieces(answers, decode)
    if not own and not files:
        raise SpecVizError(
            "No answer of the corpus is a passage: long, without code or sums, at a temperature under 1."
        )
    prompts = list(make_prompts(own, files, chosen.prompts, chosen.seed))
    save_prompts(chosen.out, prompts)
    print(f"{len(prompts)} prompts from {len(own)} answers and {len(files)} files")


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecVizError(f"The text {path} could not be read: {error}.") from None
    if not text.strip():
        raise SpecVizError(f"The text {path} is empty.")
    return text


if __name__ == "__main__":
    sys.exit(main())
