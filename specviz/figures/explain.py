"""Plain sentences about a node, a token and a step, in the words of the trace's own definitions.

The sentences are plain text: whitespace and controls of model text are made visible, nothing is escaped.
Put them into a page with `textContent`; figures escape them for plotly.
"""

from __future__ import annotations

from collections.abc import Callable

from specviz.figures.draft_tree import find_extra_token, find_taken_token, is_slot_token, quote_token, takes_unverified
from specviz.figures.labels import format_prob, show_piece
from specviz.trace import LateVerdict, NodeTrace, StepTrace, TokenTrace


def explain_node(step: StepTrace, node_idx: int, next_step: StepTrace | None = None) -> str:
    """Say why a node was accepted, rejected, never judged, cut or taken unverified, with its numbers.

    `next_step` is where the target's late word on an unverified node stands.
    Raises KeyError where the step has no such node.
    """
    node = next((node for node in step.nodes if node.idx == node_idx), None)
    if node is None:
        raise KeyError(node_idx)
    late = _find_verdict(step, node, next_step)
    parts = [explain_verdict(step, node), _tell_evidence(node), _tell_late(node, late)]
    return " ".join(part for part in parts if part)


def explain_verdict(step: StepTrace, node: NodeTrace) -> str:
    """Say why a node has its status, without its numbers."""
    return _EXPLAINERS[node.status](step, node, {other.idx: other for other in step.nodes})


def explain_token(token: TokenTrace) -> str:
    """Say where a token of the prompt or of the answer came from."""
    where = "" if token.step is None else f" in step {token.step}"
    node = "" if token.node is None else f" (node {token.node})"
    quoted = quote_token(token)
    return {
        "prompt": f"{quoted} belongs to the prompt.",
        "target": f"{quoted} is the target's own next token{where}, without a draft.",
        "draft": f"{quoted} was drafted and accepted{where}{node}: the target takes the same token there.",
        "correction": f"{quoted} is the target's correction{where}: none of the drafted tokens there matched.",
        "bonus": f"{quoted} is a bonus{where}: the target's next token where no draft was left to judge.",
        "unverified": f"{quoted} was taken from the draft{where}{node} without the target's word.",
    }[token.source]


def explain_step(step: StepTrace) -> str:
    """Narrate a step in one sentence."""
    if step.index == 0:
        return f"Prefill: the target reads the prompt and gives the first token{_list_tokens(step.committed)}."
    drafted = [node for node in step.nodes if node.status != "root"]
    if not drafted:
        given = f"{_count(step.committed, 'token')}{_list_tokens(step.committed)}"
        return f"Step {step.index}: one target pass without a draft gives {given}."
    return f"Step {step.index}: {_narrate_draft(step, drafted)}{_narrate_commit(step)}"


def _narrate_draft(step: StepTrace, drafted: list[NodeTrace]) -> str:
    if takes_unverified(step):
        n_taken = sum(node.status == "unverified" for node in drafted)
        return f"{n_taken} of {_count(drafted, 'slot token')} taken without the target's word, "
    n_judged = sum(node.status in ("accepted", "rejected") for node in drafted)
    return f"of {_count(drafted, 'drafted token')} the target judged {n_judged} and accepted {len(step.accepted)}, "


def _narrate_commit(step: StepTrace) -> str:
    extra = find_extra_token(step)
    n_cut = sum(node.status == "cut" for node in step.nodes)
    cut = f", {n_cut} more cut by the end of the run" if n_cut else ""
    total = f"{_count(step.committed, 'token')} committed{_list_tokens(step.committed)}{cut}."
    if extra is None:
        return f"and the target added none; {total}"
    kind = {"correction": "the correction", "bonus": "the bonus"}.get(extra.source, "its own next token")
    return f"and the target added {kind} {quote_token(extra)}; {total}"


def _explain_root(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return f"Root: {quote_token(node)} is the last committed token; the draft starts behind it."


def _explain_accepted(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    behind = _name_parent(node, nodes)
    return f"Accepted: behind {behind} the target took {quote_token(node)} too."


def _explain_rejected(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    behind, taken = _name_parent(node, nodes), find_taken_token(step, node.parent)
    if taken is None:
        return f"Rejected: {behind} was reached, and the target took another token than {quote_token(node)} there."
    own, other = _quote_apart(node, taken)
    return f"Rejected: {behind} was reached, and there the target took {other}, not {own}."


def _explain_unreached(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    parent = nodes.get(node.parent)
    behind = _name_parent(node, nodes)
    if parent is not None and parent.status in ("accepted", "root", "cut"):
        why = f"the run ended before a token behind {behind} was committed"
    else:
        state = "" if parent is None else f" (itself {parent.status})"
        why = f"its parent {behind}{state} was not reached"
    return f"Never judged: {why}, so this is no verdict on {quote_token(node)}."


def _explain_cut(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    quoted = quote_token(node)
    end = "the run ended before it (end of text, token budget, stop text or context), so it was not committed"
    if is_slot_token(node):
        return f"Cut: {quoted} would have been taken without the target's word, but {end}."
    return f"Cut: {quoted} matched the target's token, but {end}."


def _explain_unverified(step: StepTrace, node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return f"Unverified: {quote_token(node)} was taken without the target's word."


def _find_verdict(step: StepTrace, node: NodeTrace, next_step: StepTrace | None) -> LateVerdict | None:
    if next_step is None or node.status != "unverified":
        return None
    return next((late for late in next_step.late if (late.step, late.node) == (step.index, node.idx)), None)


def _tell_late(node: NodeTrace, late: LateVerdict | None) -> str:
    if node.status != "unverified":
        return ""
    if late is None:
        return "The next pass tells what the target would have chosen."
    agrees = late.target_argmax == node.token_id
    choice = "it too" if agrees else f"“{show_piece(late.argmax_piece, token_id=late.target_argmax)}”"
    numbers = f"target probability {format_prob(late.target_prob)}, rank {late.target_rank + 1}"
    return f"One pass later the target would have chosen {choice} ({numbers} for this token)."


_EXPLAINERS: dict[str, Callable[[StepTrace, NodeTrace, dict[int, NodeTrace]], str]] = {
    "root": _explain_root,
    "accepted": _explain_accepted,
    "rejected": _explain_rejected,
    "unreached": _explain_unreached,
    "cut": _explain_cut,
    "unverified": _explain_unverified,
}


def _name_parent(node: NodeTrace, nodes: dict[int, NodeTrace]) -> str:
    return quote_token(nodes[node.parent]) if node.parent in nodes else "its parent"


def _quote_apart(one: NodeTrace, other: NodeTrace | TokenTrace) -> tuple[str, str]:
    """Quote two tokens, with their ids where they look the same."""
    quoted = quote_token(one), quote_token(other)
    if quoted[0] != quoted[1]:
        return quoted
    return f"{quoted[0]} (id {one.token_id})", f"{quoted[1]} (id {other.token_id})"


def _tell_evidence(node: NodeTrace) -> str:
    """Give a judged node's probabilities; a node that was not judged has the draft's alone."""
    if node.status == "root":
        return ""
    draft = f"Draft probability {_prob_text(node.draft_prob)}"
    if node.status in ("unreached", "unverified") or is_slot_token(node):
        return f"{draft}."
    return f"{draft}, target probability {_prob_text(node.target_prob)}{_tell_rank(node)}."


def _prob_text(prob: float | None) -> str:
    return "not recorded" if prob is None else format_prob(prob)


def _tell_rank(node: NodeTrace) -> str:
    return "" if node.target_rank is None else f", rank {node.target_rank + 1} for the target"


def _count(things: list, noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")


def _list_tokens(tokens: list[TokenTrace]) -> str:
    shown = " ".join(quote_token(token, 12) for token in tokens[:6])
    return f": {shown}{' …' if len(tokens) > 6 else ''}" if shown else ""
