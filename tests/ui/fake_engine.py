"""A scripted engine: whole traces without a model, for the page's tests and for looking at the page.

The prompt chooses the script: `very slow`, `slow`, `long`, `hostile`, `bytes`, `fail`, `refuse`, `experts`; anything
else is prose.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from specviz.decoding.events import Event, Finished, Passing, Started, Stepped
from specviz.errors import SpecVizError
from specviz.metrics import compute_metrics
from specviz.settings import RunSettings
from specviz.trace import (
    BaselineTrace,
    BatchTrace,
    DrafterInfo,
    KvTrace,
    MaskRule,
    MissTrace,
    ModelInfo,
    NextTrace,
    NodeTrace,
    RoutingTrace,
    RunTrace,
    StepTimes,
    StepTrace,
    TokenTrace,
    TopToken,
    expand_rule,
)

WORDS = (
    "The| quick| brown| fox| jumps| over| the| lazy| dog|.|\n\n|It| is| a| sentence| that| holds| every| letter|,|"
    " and| it| is| often| used| to| show| a| typeface|.|\n|\tdef| f|(x|):|\n|    return| x|  |+ 1|\n"
)
PROSE = WORDS.split("|")
HOSTILE = [
    "${alert(1)}",
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "{{value}}",
    '"quoted"',
    "&lt;b&gt;",
    "\u202eabc",
    "`backtick`",
    "\\u0041",
    "مرحبا",
    "e\u0301",
    "</div>",
    "\u200b",
    "\x00",
    "👩‍👩‍👧",
    "x" * 10_000,
]
# A smiling face over three tokens, and a token id without an entry.
SPLIT = [("", "f09f"), ("", "98"), ("😀", "80"), (" ok", None), ("⟨id 509⟩", None), ("", None)]


DEFAULTS = {
    "plain": {},
    "lookahead": {"k": 4, "selection": "verified", "placeholder": "prompt-mean", "slot_attention": "diagonal"},
}


@dataclass
class FakeEngine:
    """Fits `specviz.ui.backend.Backend`."""

    delay: float = 0.02
    model_names: list[str] = field(default_factory=lambda: ["scripted"])
    drafter_names: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=lambda: ["plain", "lookahead"])
    n_steps: int = 0
    closed: int = 0
    begun: list[float] = field(default_factory=list)  # the clock's time at which each pass began

    def info(self, model: str) -> ModelInfo:
        """Describe the scripted model."""
        return ModelInfo(name=model, source="scripted", dtype="float32", device="cpu")

    def stream(self, prompts: list[str], settings: RunSettings) -> Iterator[Event]:
        """Play the script that each prompt names, one row each."""
        if "refuse" in prompts[0]:
            raise SpecVizError("The prompt has 9000 tokens, but <b>scripted</b> reads at most 2048.")
        runs = [make_run(row, prompt, settings, self.info(settings.model)) for row, prompt in enumerate(prompts)]
        try:
            yield Started([run.model_copy(update={"steps": []}) for run in runs])
            yield from self._play(prompts, runs)
            if settings.compare_plain:  # the plain lane runs last, and its numbers come with the end
                for _ in runs[0].answer:
                    yield from self._pass(0.3 / len(runs[0].answer))
            yield Finished(runs[0] if len(runs) == 1 else BatchTrace(batch=runs))
        finally:
            self.closed += 1

    def _play(self, prompts: list[str], runs: list[RunTrace]) -> Iterator[Event]:
        delay = 2.0 if "very slow" in prompts[0] else 0.5 if "slow" in prompts[0] else self.delay
        for i in range(max(len(run.steps) for run in runs)):
            yield from self._pass(delay)
            for row, run in enumerate(runs):
                if i < len(run.steps):
                    so_far = "".join(token.piece for step in run.steps[: i + 1] for token in step.committed)
                    yield Stepped(row, run.steps[i], so_far[: len(run.text)])
            if "fail" in prompts[0] and i == 5:
                raise RuntimeError("a detail that must not reach the page")

    def _pass(self, seconds: float) -> Iterator[Event]:
        yield Passing()
        self.n_steps += 1
        self.begun.append(time.time())
        time.sleep(seconds)


def make_run(row: int, prompt: str, settings: RunSettings, model: ModelInfo) -> RunTrace:
    """Make the whole trace of one prompt."""
    steps = make_steps(prompt, settings, seed=row)
    joined = "".join(token.piece for step in steps for token in step.committed)
    text = joined[: joined.rfind(settings.stop[0])] if settings.stop else joined
    tokens = [TokenTrace(token_id=i, piece=piece, source="prompt") for i, piece in enumerate(prompt.split(" "))]
    run = RunTrace(
        run_id=f"scripted-{row}",
        created="2025-01-01T00:00:00Z",
        method=settings.method,
        exact=settings.exact,
        settings=settings.resolved(DEFAULTS[settings.method]).model_dump(mode="json"),
        model=model,
        drafter=DrafterInfo(name="prompt-mean", source="none", trained=False, notes=["random <weights>"]),
        versions={"specviz": "0.1.0", "torch": "none"},
        prompt=tokens,
        steps=steps,
        text=text,
        text_cut=len(joined) - len(text),
        finish_reason="length" if text == joined else "stop_text",
        notices=[] if settings.exact else ["Self-consistent selection is lossy: the text may leave the target's own."],
        row=row,
    )
    baseline = make_baseline(run) if settings.compare_plain else None
    run = run.model_copy(update={"baseline": baseline})
    return run.model_copy(update={"metrics": compute_metrics(run)})


def make_baseline(run: RunTrace) -> BaselineTrace:
    """Make a plain lane that says the same, more slowly."""
    answer = run.answer
    return BaselineTrace(
        token_ids=[token.token_id for token in answer],
        pieces=[token.piece for token in answer],
        text=run.text,
        seconds=0.03 * len(answer),
        times_ms=[30.0] * len(answer),
        equal=True,
        n_equal=len(answer),
    )


def make_steps(prompt: str, settings: RunSettings, seed: int = 0) -> list[StepTrace]:
    """Make the steps of a prompt's script under the budget of the settings."""
    script = _script_of(prompt)
    chance = random.Random(seed)
    steps: list[StepTrace] = []
    n_done = 0
    while n_done < settings.max_new_tokens:
        step = _make_step(len(steps), script, n_done, settings, chance, prompt)
        keep = settings.max_new_tokens - n_done
        steps.append(step.model_copy(update={"committed": step.committed[:keep]}))
        n_done += len(steps[-1].committed)
    return steps


def _script_of(prompt: str) -> list[tuple[str, str | None]]:
    if "hostile" in prompt:
        return [(piece, None) for piece in HOSTILE]
    return SPLIT if "bytes" in prompt else [(piece, None) for piece in PROSE]


def _make_step(
    index: int,
    script: list[tuple[str, str | None]],
    n_done: int,
    settings: RunSettings,
    chance: random.Random,
    prompt: str,
) -> StepTrace:
    """One step; `script[n_done:]` is what the target says next."""
    n_prompt, experts = len(prompt.split(" ")), "experts" in prompt
    drafts = settings.method != "plain" and index > 0
    k = (settings.k or 4) if drafts else 0
    width = settings.candidates or 1
    parents = [-1] + ([parent for depth in range(k) for parent in [_chain_node(depth, width)] * width])
    n_accepted = chance.randint(0, k) if drafts else 0
    nodes = [_make_node(i, parents, script, n_done, n_accepted, width, chance, settings) for i in range(len(parents))]
    prefix = n_prompt + n_done
    rule = MaskRule(
        name="lookahead_diagonal" if drafts else "causal", prefix=prefix - 1, parents=parents, k=k if drafts else 0
    )
    added = k * len(parents) if drafts else 0
    return StepTrace(
        index=index,
        prefix_len=prefix,
        nodes=nodes,
        accepted=[node.idx for node in nodes if node.status in ("accepted", "unverified")],
        committed=_commit(index, script, n_done, n_accepted, k, width, settings),
        mask=expand_rule(rule).model_copy(update={"rows": [], "columns": [], "bits": None, "earlier_visible": []}),
        routing=[_make_routing(site, chance) for site in ("con", "f")] if experts and drafts else [],
        n_rows=len(parents) + added,
        kv=KvTrace(prefix=prefix - 1, speculative=len(parents) + added, kept=n_accepted + 1, added=added),
        times_ms=StepTimes(
            draft=round(chance.uniform(0.2, 0.4), 3),
            verify=round(chance.uniform(20, 30), 3),
            commit=round(chance.uniform(0.1, 0.3), 3),
            record=0.2,
        ),
    )


def _chain_node(depth: int, width: int) -> int:
    """The node of the accepted chain at a depth: the first of its siblings."""
    return 0 if depth == 0 else 1 + (depth - 1) * width


def _make_node(
    idx: int,
    parents: list[int],
    script: list[tuple[str, str | None]],
    n_done: int,
    n_accepted: int,
    width: int,
    chance: random.Random,
    settings: RunSettings,
) -> NodeTrace:
    depth = 0 if idx == 0 else 1 + (idx - 1) // width
    on_chain = idx == 0 or (idx - 1) % width == 0
    lossy = not settings.exact
    if idx == 0:
        status = "root"
    elif depth <= n_accepted and on_chain:
        status = "unverified" if lossy else "accepted"
    elif depth <= n_accepted + 1:
        status = "rejected"
    else:
        status = "unreached"
    right = status in ("accepted", "unverified", "root")
    piece, raw = script[(n_done - 1 + depth) % len(script)] if right else (f" wrong{idx}", None)
    reached = status in ("accepted", "root")
    return NodeTrace(
        idx=idx,
        parent=parents[idx],
        depth=depth,
        token_id=(n_done - 1 + depth) % len(script) if right else 1000 + idx,
        piece=piece,
        bytes=raw,
        draft_prob=None if idx == 0 else round(chance.uniform(0.1, 1), 4),
        target_prob=None if idx == 0 or status == "unreached" else round(chance.uniform(0.5, 1) if right else 0.01, 4),
        target_rank=None if idx == 0 or status == "unreached" else (0 if right else chance.randint(1, 90)),
        target_argmax=None if idx == 0 or status == "unreached" else (n_done - 1 + depth) % len(script),
        status=status,  # type: ignore[arg-type]
        next=_make_next(chance) if reached else None,
        miss=MissTrace(token_id=3, reason="below_top_k", draft_rank=7, draft_prob=0.01) if reached else None,
    )


def _make_next(chance: random.Random) -> NextTrace:
    top = [TopToken(token_id=i, piece=PROSE[i], prob=round(0.5 / (i + 1), 4)) for i in range(5)]
    return NextTrace(draft_top5=top, target_top5=top, kl=round(chance.uniform(0, 1), 4), outside_mass=0.0)


def _commit(
    index: int,
    script: list[tuple[str, str | None]],
    n_done: int,
    n_accepted: int,
    k: int,
    width: int,
    settings: RunSettings,
) -> list[TokenTrace]:
    """The accepted tokens and the target's own one behind them."""
    draft = "draft" if settings.exact else "unverified"
    last = "target" if k == 0 else ("bonus" if n_accepted == k else "correction")
    committed = []
    for i in range(n_accepted + 1):
        token_id = (n_done + i) % len(script)
        piece, raw = script[token_id]
        source = draft if i < n_accepted else last
        node = _chain_node(i + 1, width) if i < n_accepted else None
        committed.append(
            TokenTrace(token_id=token_id, piece=piece, bytes=raw, source=source, step=index, node=node)  # type: ignore[arg-type]
        )
    return committed


def _make_routing(site: str, chance: random.Random) -> RoutingTrace:
    weights = [chance.random() for _ in range(8)]
    probabilities = [round(weight / sum(weights), 4) for weight in weights]
    selected = sorted(range(8), key=lambda i: -probabilities[i])[:2]
    return RoutingTrace(
        site=site, node=0, probabilities=probabilities, selected=selected, weights=[probabilities[i] for i in selected]
    )
