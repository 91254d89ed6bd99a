"""What the page marks of a choice, view by view."""

from __future__ import annotations

from stage_driver import Visitor

RINGED = "document.querySelector('.plot.tree').data[4].x.length"
BOXED_ROWS = "document.querySelector('.plot.mask').layout.shapes.filter((shape) => shape.type === 'rect').length"
BOXED_EXPERTS = "(document.querySelector('.plot.routing').layout.shapes ?? []).length"
CHIPS = "document.querySelectorAll('.stage .levels [aria-pressed=true]').length"
TOKENS = "document.querySelectorAll('.stage .answer .chosen').length"
LISTED = "document.querySelectorAll('.stage .twins [aria-pressed=true]').length"


def choose_nothing(visitor: Visitor) -> None:
    """Go to a step that accepted something, by its group and not by one of its tokens."""
    visitor.tab.evaluate(
        """() => {
            const chip = document.querySelector('.stage .answer .token[data-status=accepted]');
            const range = document.querySelector('.stage .transport input');
            range.value = chip.dataset.step;
            range.dispatchEvent(new Event('input', { bubbles: true }));
        }"""
    )
    visitor.expect(CHIPS, 0)
    visitor.expect(BOXED_ROWS, 0)


def expect_one_node_everywhere(visitor: Visitor) -> None:
    """Wait until the accepted node that was chosen is marked in every view."""
    visitor.expect(TOKENS, 1)
    visitor.expect(CHIPS, 1)
    visitor.expect(RINGED, 1)
    visitor.expect(f"{BOXED_ROWS} >= 4", True)  # the row of the node, and those of its three slots
    visitor.expect(f"{LISTED} >= 5", True)
    visitor.tab.wait_for_function("document.querySelector('.stage .why')?.textContent.startsWith('Accepted')")
