"""What a trace tells: each function takes steps or runs and returns plain data; no model is needed.

In a notebook::

    import specviz
    from specviz.analysis import Change, change_step, count_misses

    run = specviz.load_trace("trace.json")
    change_step(run.steps[3], Change(nodes=8), run.settings)
    count_misses(run)
"""

from specviz.analysis.compare import compare_runs
from specviz.analysis.contemplate import count_named, list_thoughts
from specviz.analysis.divergence import diverge_by_depth
from specviz.analysis.expert_usage import context_information, count_experts
from specviz.analysis.hindsight import look_back
from specviz.analysis.losslessness import judge_losslessness
from specviz.analysis.mask_proof import prove_row
from specviz.analysis.misses import count_misses, pool_misses
from specviz.analysis.race import make_race
from specviz.analysis.regrow import Change, NotRecordedError
from specviz.analysis.shadow import compare_shadow, total_shadow
from specviz.analysis.token_kind import count_kinds
from specviz.analysis.waterfall import make_waterfall, share_times
from specviz.analysis.what_if import change_step

__all__ = [
    "Change",
    "NotRecordedError",
    "change_step",
    "compare_runs",
    "compare_shadow",
    "context_information",
    "count_experts",
    "count_kinds",
    "count_misses",
    "count_named",
    "diverge_by_depth",
    "judge_losslessness",
    "list_thoughts",
    "look_back",
    "make_race",
    "make_waterfall",
    "pool_misses",
    "prove_row",
    "share_times",
    "total_shadow",
]
