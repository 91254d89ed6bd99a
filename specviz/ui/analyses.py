"""The analyses as answers to the stage: plain values with the bare figures to draw and the sentences to read.

Every question names its run by a handle, so a recorded run is analysed without a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from specviz.analysis.compare import Comparison, StepPair, compare_runs
from specviz.analysis.contemplate import count_named, list_thoughts
from specviz.analysis.divergence import diverge_by_depth
from specviz.analysis.hindsight import look_back
from specviz.analysis.losslessness import judge_losslessness
from specviz.analysis.mask_proof import prove_row
from specviz.analysis.misses import MISS_SENTENCES, count_misses, find_miss
from specviz.analysis.race import make_race
from specviz.analysis.regrow import Change
from specviz.analysis.rows import find_row, name_prompts
from specviz.analysis.shadow import compare_shadow, total_shadow
from specviz.analysis.token_kind import count_kinds
from specviz.analysis.waterfall import make_waterfall, share_times
from specviz.analysis.what_if import change_step, describe_change
from specviz.figures import (
    acceptance_figure,
    divergence_figure,
    hindsight_figure,
    kinds_figure,
    mask_proof_figure,
    misses_figure,
    name_place,
    race_figure,
    times_figure,
    tokens_per_pass_figure,
    waterfall_figure,
)
from specviz.figures.experts import SITE_TITLES, TARGET_PREFIX, list_sites, routing_history_figure
from specviz.figures.labels import name_row
from specviz.sentence import say
from specviz.trace import RunTrace, StepTrace

if TYPE_CHECKING:
    from specviz.ui.questions import Question

N_UNPAID = 12
WHOLE_RUN = ("race", "losslessness", "overview", "drafting", "hindsight", "future", "experts")
LANE_NAMES = {"plain": "plain", "lookahead": "Lookahead Attention", "eagle3": "EAGLE-3", "confu": "ConFu"}

Answer = dict[str, Any]


@dataclass(frozen=True)
class _AboutRun:
    """A question that nobody asks: about a run, or a step of it."""

    about: RunTrace
    values: dict[str, Any] = field(default_factory=dict)

    def run(self) -> RunTrace:
        """Return the run."""
        return self.about


def answer_whole_run(run: RunTrace) -> Answer:
    """Return the answers about a run as a whole by kind, for a page that has nobody to ask."""
    about: Any = _AboutRun(run)
    return {kind: ANALYSES[kind](about) for kind in WHOLE_RUN}


def answer_steps(run: RunTrace) -> list[Answer]:
    """Return the answer about each step, for a page that has nobody to ask; `proof` is of the row that attended."""
    return [_answer_step_alone(run, place) for place in range(len(run.steps))]


def _answer_step_alone(run: RunTrace, place: int) -> Answer:
    about: Any = _AboutRun(run, {"step": place})
    answer = answer_step(about)
    about.values["mask_row"] = answer["attention_row"] or 0
    return answer | {"proof": answer_mask_proof(about) if answer["rows"] else None}


def answer_race(question: Question) -> Answer | None:
    """Answer the race of a run against its plain lane; None for the plain lane itself."""
    run = question.run()
    race = make_race(run)
    if race is not None:
        return asdict(race) | {"figure": race_figure(race, theme=None)}
    return None if run.method == "plain" else {"plain": None}


def answer_losslessness(question: Question) -> Answer:
    """Answer the verdict, and both texts around the first divergence."""
    run = question.run()
    found = judge_losslessness(run)
    return asdict(found) | {"divergence": found.divergence.model_dump() if found.divergence else None}


def answer_overview(question: Question) -> Answer:
    """Answer the figures of a whole run."""
    run = question.run()
    shares = share_times(run.steps)
    return {
        "tokens_per_pass": tokens_per_pass_figure(run, theme=None),
        "acceptance": acceptance_figure(run, theme=None),
        "times": times_figure(run, theme=None),
        "shares": asdict(shares) | {"ms": shares.ms},
    }


def answer_drafting(question: Question) -> Answer:
    """Answer where drafts hit and why they missed; a part without data is None."""
    run = question.run()
    kinds, misses, divergence = count_kinds(run.steps), count_misses(run), diverge_by_depth(run.steps)
    is_judged = any(count.n_judged for count in kinds.values())
    return {
        "kinds": kinds_figure(kinds, theme=None) if is_judged else None,
        "misses": misses_figure(misses, theme=None) if misses.by_kind else None,
        "n_missed": misses.n_passes,
        "n_unrecorded": misses.n_unrecorded,
        "sentences": [[misses.by_reason[reason], text] for reason, text in MISS_SENTENCES.items()],
        "divergence": divergence_figure({LANE_NAMES[run.method]: divergence}, theme=None) if divergence else None,
    }


def answer_hindsight(question: Question) -> Answer | None:
    """Answer what of the run's trees paid; None where nothing can be said."""
    found = look_back(question.run())
    if found is None:
        return None
    unpaid = [{"place": name_place(count.place), "n_sent": count.n_sent} for count in found.never_paid[:N_UNPAID]]
    return {
        "figure": hindsight_figure(found, theme=None),
        "n_passes": found.n_passes,
        "n_sent": found.n_sent,
        "n_accepted": found.n_accepted,
        "n_unpaid_places": len(found.never_paid),
        "n_places": len(found.counts),
        "unpaid": unpaid,
        "best": [name_place(place) for place in found.best],
        "tokens_per_pass": found.tokens_per_pass,
        "best_tokens_per_pass": found.best_tokens_per_pass,
    }


def answer_future(question: Question) -> Answer | None:
    """Answer what ConFu's future token changed, and what contemplate tokens named; None for other methods."""
    run = question.run()
    shadow, thoughts = total_shadow(run.steps), list_thoughts(run)
    if shadow is None and not thoughts:
        return None
    return {"shadow": asdict(shadow) if shadow else None, "named": count_named(thoughts)}


def answer_experts(question: Question) -> Answer | None:
    """Answer the history of each of a drafter's routers; None where nothing routes."""
    run = question.run()
    sites = [site for site in list_sites(run) if not site.startswith(TARGET_PREFIX)]
    histories = [
        {"site": site, "title": SITE_TITLES.get(site, site), "figure": routing_history_figure(run, site, theme=None)}
        for site in sites
    ]
    return {"sites": histories} if histories else None


def answer_step(question: Question) -> Answer:
    """Answer the time of a step, and what can be changed about it."""
    run, step = _read_step(question)
    return {
        "waterfall": waterfall_figure(make_waterfall(step), theme=None),
        "ms": make_waterfall(step).ms,
        "record_ms": step.times_ms.record,
        "change": asdict(describe_change(step, run.settings)),
        "miss": _dump_miss(step),
        "shadow": _dump_shadow(step),
        "thoughts": [_dump_thought(thought) for thought in list_thoughts(run) if thought.step == step.index],
        "rows": [name_row(row) for row in step.mask.rows] or step.n_rows,
        "attention_row": step.attention["row"] if step.attention else None,
    }


def answer_what_if(question: Question) -> Answer:
    """Answer what the step would have given under the value `change`."""
    run, step = _read_step(question)
    following = [token for later in run.steps if later.index > step.index for token in later.committed]
    outcome = change_step(step, Change(**question.values["change"]), run.settings, following if run.exact else None)
    return {
        "n_nodes": len(outcome.tree),
        "nodes": [
            {"piece": token.piece, "token_id": token.token_id, "depth": token.depth, "sent": token.node is not None}
            for token in outcome.tree[1:]
        ],
        "accepted": [{"piece": token.piece, "token_id": token.token_id} for token in outcome.accepted],
        "extra": outcome.extra.model_dump() if outcome.extra else None,
        "unknown": outcome.unknown,
        "n_tokens": outcome.n_tokens,
        "was": len(step.committed),
    }


def answer_mask_proof(question: Question) -> Answer:
    """Answer the mask of the value `mask_row` three times over."""
    _, step = _read_step(question)
    proof = prove_row(step, int(question.values["mask_row"]))
    return {
        "label": name_row(proof.asks),
        "figure": mask_proof_figure(proof, theme=None),
        "leaks": [name_row(proof.cells[i].column) for i in proof.leaks],
        "earlier_leaks": list(proof.earlier_leaks),
        "differs": proof.differs,
        "n_masked": sum(cell.ruled is False for cell in proof.cells),
        "first_column": proof.first_column,
        "earlier": [proof.earlier_recorded, proof.earlier_ruled, proof.earlier_attention],
        "is_recorded": any(cell.recorded is not None for cell in proof.cells),
        "attention_row": proof.attention_row,
        "error": proof.error,
    }


def answer_comparison(question: Question) -> Answer:
    """Answer a run beside the row `other_row` of the trace `other`, by default the row that answers the same prompt."""
    left, others = question.run(), question.runs("other")
    asked = question.values.get("other_row")
    row = find_row(left, others) if asked is None else int(asked)
    right = others[row]
    found = compare_runs(left, right)
    names = _name_lanes(left, right)
    return {
        "names": names,
        "row": row,
        "rows": name_prompts(others) if len(others) > 1 else [],
        "same_prompt": found.same_prompt,
        "n_equal": found.n_equal,
        "lengths": [len(left.answer), len(right.answer)],
        "parting": asdict(found.parting) if found.parting else None,
        "parts_at": _dump_pair(found.first_parting_step),
        "n_pairs": len(found.pairs),
        "metrics": [left.metrics, right.metrics],
        "acceptance": [found.left_acceptance, found.right_acceptance],
        "divergence": _draw_divergences(found, names),
        "lanes": [_list_steps(left), _list_steps(right)],
    }


ANALYSES: dict[str, Callable[[Question], Any]] = {
    "race": answer_race,
    "losslessness": answer_losslessness,
    "overview": answer_overview,
    "drafting": answer_drafting,
    "hindsight": answer_hindsight,
    "future": answer_future,
    "experts": answer_experts,
    "step": answer_step,
    "what_if": answer_what_if,
    "mask_proof": answer_mask_proof,
    "compare": answer_comparison,
}


def _read_step(question: Question) -> tuple[RunTrace, StepTrace]:
    run = question.run()
    return run, run.steps[int(question.values["step"])]


def _dump_shadow(step: StepTrace) -> Answer | None:
    found = compare_shadow(step)
    if found is None or step.shadow is None:
        return None
    return asdict(found) | {"nodes": [node.model_dump() for node in step.shadow]}


def _dump_miss(step: StepTrace) -> Answer | None:
    """Return why no draft had the target's own token of the step, with that token."""
    miss = find_miss(step)
    token = next((token for token in step.committed if miss and token.token_id == miss.token_id), None)
    if miss is None or token is None:
        return None
    return miss.model_dump() | {"piece": token.piece, "bytes": token.bytes, "sentence": MISS_SENTENCES[miss.reason]}


def _dump_thought(thought: Any) -> Answer:
    return {
        "node": thought.node,
        "top5": [token.model_dump() for token in thought.top5],
        "following": [token.model_dump() for token in thought.following],
        "named": thought.named,
    }


def _name_lanes(left: RunTrace, right: RunTrace) -> list[str]:
    """Name two runs by what tells them apart: the method, else the drafter, else which of them is on the stage."""
    methods = [LANE_NAMES[run.method] for run in (left, right)]
    if methods[0] != methods[1]:
        return methods
    drafters = [run.drafter.name if run.drafter else "" for run in (left, right)]
    if drafters[0] != drafters[1]:
        return [", ".join(filter(None, names)) for names in zip(methods, drafters, strict=True)]
    return [say("{lane} (this run)", lane=methods[0]), say("{lane} (the other)", lane=methods[1])]


def _dump_pair(pair: StepPair | None) -> Answer | None:
    if pair is None:
        return None
    steps = (pair.left, pair.right)
    return {
        "n_text": pair.n_text,
        "steps": [step.index for step in steps],
        "pieces": [[token.model_dump() for token in step.committed] for step in steps],
    }


def _draw_divergences(found: Comparison, names: list[str]) -> Answer | None:
    lanes = dict(zip(names, (found.left_divergence, found.right_divergence), strict=True))
    return divergence_figure(lanes, theme=None) if any(lanes.values()) else None


def _list_steps(run: RunTrace) -> list[list[Answer]]:
    """Return the tokens of each step, for two ribbons one above the other."""
    shown = {"piece", "bytes", "token_id", "source"}
    return [[token.model_dump(include=shown) for token in step.committed] for step in run.steps]
