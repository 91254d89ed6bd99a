"""Figures as pure functions from a step or a run to a plain plotly dict.

In a notebook::

    from specviz import figures
    from specviz.trace import load_trace

    run = load_trace("trace.json")
    pieces = [token.piece for token in run.prompt + run.answer]
    figures.as_figure(figures.mask_figure(run.steps[3], pieces)).show()
    figures.as_figure(figures.tree_figure(run.steps[3])).show()
    print(figures.explain_step(run.steps[3]))

The page draws the same dicts live: bare (`theme=None`), joined with the frames of `figure_constants()`, see `frame.py`.
"""

from specviz.figures.draft_tree import EXTRA_NODE
from specviz.figures.drafting import divergence_figure, hindsight_figure, kinds_figure, misses_figure, name_place
from specviz.figures.experts import list_sites, routing_figure, routing_history_figure
from specviz.figures.explain import explain_node, explain_step, explain_token
from specviz.figures.frame import PlotlyDict, join_frame
from specviz.figures.frames import figure_constants, figure_frames
from specviz.figures.labels import escape_html, label_piece, show_piece
from specviz.figures.mask import expand_hover, mark_mask_rows, mask_figure
from specviz.figures.mask_proof import mask_proof_figure
from specviz.figures.notebook import as_figure
from specviz.figures.palette import palette
from specviz.figures.race import race_figure
from specviz.figures.reasons import mask_reasons, reason_sentences
from specviz.figures.runs import acceptance_figure, times_figure, tokens_per_pass_figure
from specviz.figures.seed import SEED_REASON, seed_drawing_figure, what_runs_figure
from specviz.figures.tree import NODE_TRACE, SELECTION_TRACE, tree_figure
from specviz.figures.waterfall import waterfall_figure

__all__ = [
    "EXTRA_NODE",
    "NODE_TRACE",
    "SEED_REASON",
    "SELECTION_TRACE",
    "PlotlyDict",
    "acceptance_figure",
    "as_figure",
    "divergence_figure",
    "escape_html",
    "expand_hover",
    "explain_node",
    "explain_step",
    "explain_token",
    "figure_constants",
    "figure_frames",
    "hindsight_figure",
    "join_frame",
    "kinds_figure",
    "label_piece",
    "list_sites",
    "mark_mask_rows",
    "mask_figure",
    "mask_proof_figure",
    "mask_reasons",
    "misses_figure",
    "name_place",
    "palette",
    "race_figure",
    "reason_sentences",
    "routing_figure",
    "routing_history_figure",
    "seed_drawing_figure",
    "show_piece",
    "times_figure",
    "tokens_per_pass_figure",
    "tree_figure",
    "waterfall_figure",
    "what_runs_figure",
]
