"""A lesson as Markdown: for people a page to read, for the stage a few narrated scenes.

    # Title
    <!-- recording: lookahead-tree -->

    What it is about.

    ## Title of a scene
    <!-- at: first rejected at depth 2; view: step -->

    What is to be seen there.

    <details><summary>A question?</summary>

    The answer.

    </details>

    - [ ] Something to change and watch.

`recording` is a recorded run by its name without the number; `at` is a rule of `place.py`; `view` is a tab;
`hide: outcome` behind them keeps the target's word from the class until the answer is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from specviz.errors import SpecVizError

VIEWS = ("step", "run", "compare")

_COMMENT = re.compile(r"<!--(.*?)-->", re.S)
_QUESTION = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.S)
_TASK = re.compile(r"^- \[ \] (.*)$", re.M)
_MARKUP = re.compile(r"<!--|-->|</?(?:details|summary)>", re.I)


@dataclass(frozen=True)
class Scene:
    """One place of the run with what is said there; question, answer and task may be empty."""

    title: str
    at: str
    text: str
    view: str = "step"
    question: str = ""
    answer: str = ""
    task: str = ""
    hides_outcome: bool = False


@dataclass(frozen=True)
class Lesson:
    """A title, the recorded run that it is about (empty for the run that is shown), and scenes in order."""

    title: str
    recording: str
    intro: str
    scenes: tuple[Scene, ...]


def parse_lesson(text: str) -> Lesson:
    """Read a lesson; raise SpecVizError with a sentence where it is not one."""
    head, *parts = re.split(r"^## ", text.replace("\r\n", "\n"), flags=re.M)
    title, intro = _split_title(head.strip().removeprefix("# "))
    if not head.lstrip().startswith("# ") or not title:
        raise SpecVizError("A lesson begins with a line “# Title”.")
    if not parts:
        raise SpecVizError("A lesson has at least one scene, a line “## Title”.")
    fields, intro = _take_fields(intro)
    return Lesson(title, fields.get("recording", ""), intro, tuple(_parse_scene(part) for part in parts))


def write_lesson(lesson: Lesson) -> str:
    """Write a lesson as `parse_lesson` reads it; markup that only the form of a lesson may hold is taken out."""
    head = [f"# {_line(lesson.title)}"]
    if lesson.recording:
        head.append(f"<!-- recording: {_line(lesson.recording)} -->")
    blocks = ["\n".join(head), _text(lesson.intro), *(_write_scene(scene) for scene in lesson.scenes)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _parse_scene(part: str) -> Scene:
    title, body = _split_title(part.strip())
    fields, body = _take_fields(body)
    question = _QUESTION.search(body)
    body = _QUESTION.sub("", body)
    task = _TASK.search(body)
    body = _TASK.sub("", body)
    view = fields.get("view", "step")
    if view not in VIEWS:
        raise SpecVizError(f"The scene “{title}” has the view “{view}”: choose {', '.join(VIEWS)}.")
    return Scene(
        title=title,
        at=fields.get("at", "step 1"),
        text=_tidy(body),
        view=view,
        question=question[1].strip() if question else "",
        answer=_tidy(question[2]) if question else "",
        task=task[1].strip() if task else "",
        hides_outcome=fields.get("hide") == "outcome",
    )


def _write_scene(scene: Scene) -> str:
    place = f"at: {_line(scene.at)}; view: {scene.view}" + ("; hide: outcome" if scene.hides_outcome else "")
    blocks = [f"## {_line(scene.title)}\n<!-- {place} -->", _text(scene.text)]
    if scene.question:
        question, answer = _line(scene.question), _text(scene.answer)
        blocks.append(f"<details><summary>{question}</summary>\n\n{answer}\n\n</details>")
    if scene.task:
        blocks.append(f"- [ ] {_line(scene.task)}")
    return "\n\n".join(block for block in blocks if block)


def _split_title(text: str) -> tuple[str, str]:
    title, _, body = text.partition("\n")
    return title.strip(), body


def _take_fields(body: str) -> tuple[dict[str, str], str]:
    """Return the `name: value` pairs of the comments, and the text without them."""
    pairs = [pair.partition(":") for comment in _COMMENT.findall(body) for pair in comment.split(";")]
    return {name.strip(): value.strip() for name, _, value in pairs}, _tidy(_COMMENT.sub("", body))


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _text(text: str) -> str:
    """Return a text that cannot be taken for another part of the lesson."""
    return re.sub(r"^(#+ |- \[ \] )", r" \1", _tidy(_MARKUP.sub("", text)), flags=re.M)


def _line(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())
