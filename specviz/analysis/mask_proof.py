"""The mask of one row three times over: as recorded, as its rule says, and as attention really flowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.mask_trace import MaskColumn, MaskRow, MaskTrace, expand_rule
from specviz.trace import StepTrace


@dataclass(frozen=True)
class ProofCell:
    """One column, as the row sees it; None where that is not recorded.

    `recorded` is the cell of the mask that the layers used, `ruled` what the rule says; `mean` and `largest` are
    attention weights, over all heads and layers.
    """

    column: MaskColumn
    recorded: bool | None
    ruled: bool | None
    mean: float | None
    largest: float | None

    @property
    def leaks(self) -> bool:
        """Whether the column is seen although it is masked."""
        masked = self.ruled is False or self.recorded is False
        return masked and (self.recorded is True or bool(self.largest))


@dataclass(frozen=True)
class MaskProof:
    """The columns of one row from `first_column` on; the earlier ones are counted, and named where they leak.

    `earlier_leaks` are the columns before `first_column` that are masked and got attention; `attention_row` is the row
    whose attention was recorded, `error` how far the layers' own output lies from the output of these weights (the
    largest difference, relative to the largest value): small means that they flowed.
    """

    row: int
    asks: MaskRow
    first_column: int
    earlier_recorded: int | None
    earlier_ruled: int | None
    earlier_attention: float | None
    earlier_leaks: tuple[int, ...]
    cells: tuple[ProofCell, ...]
    attention_row: int | None
    error: float | None

    @property
    def leaks(self) -> tuple[int, ...]:
        """Columns that are seen although masked, counted from `first_column`."""
        return tuple(i for i, cell in enumerate(self.cells) if cell.leaks)

    @property
    def differs(self) -> bool:
        """Whether record and rule disagree anywhere."""
        pairs = [(cell.recorded, cell.ruled) for cell in self.cells]
        pairs.append((self.earlier_recorded, self.earlier_ruled))  # type: ignore[arg-type]
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def prove_row(step: StepTrace, row: int) -> MaskProof:
    """Lay the three masks of a row side by side; raise IndexError where the pass had no such row."""
    mask = step.mask
    ruled = expand_rule(mask.rule, mask.first_column) if mask.rule is not None else None
    shown = mask if mask.columns else ruled
    if shown is None or not 0 <= row < len(shown.rows):
        raise IndexError(row)
    attention = step.attention if step.attention is not None and step.attention["row"] == row else None
    recorded_cells = _cells(mask if mask.bits is not None else None, row)
    ruled_cells = _cells(ruled, row)
    first = mask.first_column
    cells = tuple(
        ProofCell(
            column=column,
            recorded=None if recorded_cells is None else recorded_cells[i],
            ruled=None if ruled_cells is None else ruled_cells[i],
            mean=None if attention is None else attention["mean"][first + i],
            largest=None if attention is None else attention["max"][first + i],
        )
        for i, column in enumerate(shown.columns)
    )
    return MaskProof(
        row=row,
        asks=shown.rows[row],
        first_column=first,
        earlier_recorded=mask.earlier_visible[row] if mask.bits is not None and mask.earlier_visible else None,
        earlier_ruled=None if ruled is None else ruled.earlier_visible[row],
        earlier_attention=None if attention is None else sum(attention["mean"][:first]),
        earlier_leaks=() if attention is None else _find_earlier_leaks(mask, row, attention["max"][:first]),
        cells=cells,
        attention_row=None if step.attention is None else step.attention["row"],
        error=None if attention is None else attention["error"],
    )


def _find_earlier_leaks(mask: MaskTrace, row: int, largest: Sequence[float]) -> tuple[int, ...]:
    """Return the earlier columns that got attention although masked.

    Their cells are not recorded, only how many the row sees: without a rule none can be named unless all are masked.
    """
    if mask.rule is not None:
        visible = expand_rule(mask.rule).matrix()[row]
    elif mask.earlier_visible and mask.earlier_visible[row] == 0:
        visible = [False] * len(largest)
    else:
        return ()
    return tuple(i for i, weight in enumerate(largest) if weight and not visible[i])


def _cells(mask: MaskTrace | None, row: int) -> list[bool] | None:
    return None if mask is None else mask.matrix()[row]
