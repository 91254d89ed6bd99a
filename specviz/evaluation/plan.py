"""Which lanes a bench runs: methods or checkpoints, times the settings to be tried. No model is loaded here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from specviz.errors import SpecVizError
from specviz.evaluation.lanes import PLAIN
from specviz.settings import FIELDS_OF_METHOD, METHODS, Method

SWEPT = tuple(dict.fromkeys(name for fields in FIELDS_OF_METHOD.values() for name in fields))


@dataclass(frozen=True)
class PlannedLane:
    """A method, the settings that were asked of it, and the drafter that was named (None: the shipped one).

    `stem` is the lane's name without the settings: lanes of one stem make a sweep.
    """

    stem: str
    method: Method
    asked: dict[str, Any] = field(default_factory=dict)
    drafter: str | None = None

    @property
    def name(self) -> str:
        return " ".join([self.stem, *(f"{name.replace('_', '-')}={value}" for name, value in self.asked.items())])


def plan_lanes(
    methods: Sequence[str],
    sweeps: Mapping[str, Sequence[Any]],
    drafters: Mapping[str, str],
    checkpoints: Mapping[str, str],
) -> list[PlannedLane]:
    """Return the plain lane, then every method with every combination of the settings that it uses.

    `sweeps` holds the values to try by setting, `drafters` a drafter by method. `checkpoints` (drafters by lane) take
    the place of the one method's own lane. Raises SpecVizError where these contradict each other.
    """
    drafting = [_checked(method) for method in methods if method != PLAIN]
    _refuse_unused(drafting, sweeps, drafters)
    stems = _checkpoint_stems(drafting, drafters, checkpoints) if checkpoints else _method_stems(drafting, drafters)
    lanes = [PlannedLane(PLAIN, "plain"), *(lane for stem in stems for lane in _sweep(stem, sweeps))]
    names = [lane.name for lane in lanes]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SpecVizError(f"There are two lanes called {twice[0]!r}.")
    return lanes


def read_named(values: Sequence[str], flag: str, what: str) -> dict[str, str]:
    """Read `NAME=PATH` values of a flag; raises SpecVizError for another shape and for a name that stands twice."""
    named: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise SpecVizError(f"{flag} needs {what}=PATH, not {value!r}.")
        if name in named:
            raise SpecVizError(f"{flag} has the name {name!r} twice.")
        named[name] = path
    return named


def _method_stems(methods: Sequence[Method], drafters: Mapping[str, str]) -> list[PlannedLane]:
    return [PlannedLane(method, method, drafter=drafters.get(method)) for method in methods]


def _checkpoint_stems(
    methods: Sequence[Method], drafters: Mapping[str, str], checkpoints: Mapping[str, str]
) -> list[PlannedLane]:
    if len(methods) != 1 or drafters:
        raise SpecVizError(
            "--lane compares checkpoints of one method: name that one method in --methods, without --drafter."
        )
    return [PlannedLane(name, methods[0], drafter=path) for name, path in checkpoints.items()]


def _sweep(stem: PlannedLane, sweeps: Mapping[str, Sequence[Any]]) -> Iterator[PlannedLane]:
    """Yield the stem with every combination of values of the settings that its method uses."""
    used = [name for name in FIELDS_OF_METHOD[stem.method] if name in sweeps]
    for values in product(*(dict.fromkeys(sweeps[name]) for name in used)):
        yield PlannedLane(stem.stem, stem.method, dict(zip(used, values, strict=True)), stem.drafter)


def _checked(method: str) -> Method:
    if method not in METHODS:
        raise SpecVizError(f"There is no method {method!r}; choose from {', '.join(METHODS)}.")
    return method


def _refuse_unused(methods: Sequence[Method], sweeps: Mapping[str, Any], drafters: Mapping[str, str]) -> None:
    for name in sweeps:
        if not any(name in FIELDS_OF_METHOD[method] for method in methods):
            owners = [method for method, fields in FIELDS_OF_METHOD.items() if name in fields]
            raise SpecVizError(
                f"--{name.replace('_', '-')} is a setting of {' and '.join(owners)}, not asked for here."
            )
    for method in drafters:
        if method not in methods:
            raise SpecVizError(f"--drafter names a drafter for {method!r}, which is no drafting method of this bench.")
