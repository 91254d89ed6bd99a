"""A row's mask, rule and attention side by side; leaks are flagged."""

import pytest
from traces import make_node, make_step

from specviz.analysis.mask_proof import prove_row
from specviz.mask_trace import MaskRule, expand_rule, pack_bits


def proof_step(first_column=0, attention=None):
    """Two branches behind a prefix of two tokens: rows are root, node 1, node 2; columns x0 x1 r n1 n2."""
    rule = MaskRule(name="tree", prefix=2, parents=[-1, 0, 0])
    nodes = [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "accepted"), make_node(2, 0, 1, "rejected")]
    return make_step(nodes=nodes, mask=expand_rule(rule, first_column), attention=attention)


def flow(*largest):
    return {"row": 2, "mean": [value / 2 for value in largest], "max": list(largest), "error": 1e-7}


def test_record_rule_and_attention_agree():
    proof = prove_row(proof_step(attention=flow(0.3, 0.2, 0.1, 0.0, 0.4)), 2)
    assert [cell.recorded for cell in proof.cells] == [True, True, True, False, True]
    assert [cell.ruled for cell in proof.cells] == [True, True, True, False, True]
    assert [cell.largest for cell in proof.cells] == [0.3, 0.2, 0.1, 0.0, 0.4]
    assert proof.leaks == () and not proof.differs and (proof.asks.kind, proof.error) == ("candidate", 1e-7)


def test_attention_into_a_masked_column_is_a_leak():
    assert prove_row(proof_step(attention=flow(0.3, 0.2, 0.1, 1e-9, 0.4)), 2).leaks == (3,)


def test_a_recorded_cell_against_the_rule_is_a_leak():
    step = proof_step()
    cells = step.mask.matrix()
    cells[2][3] = True
    step.mask.bits = pack_bits(cells)
    proof = prove_row(step, 2)
    assert proof.leaks == (3,) and proof.differs


def test_earlier_columns_are_counted_and_attention_belongs_to_one_row():
    step = proof_step(first_column=2, attention=flow(0.3, 0.2, 0.1, 0.0, 0.4))
    proof = prove_row(step, 2)
    assert (proof.earlier_recorded, proof.earlier_ruled) == (2, 2)
    assert proof.earlier_attention == pytest.approx(0.25) and len(proof.cells) == 3
    other = prove_row(step, 1)
    assert other.attention_row == 2 and other.cells[0].mean is None and other.error is None


def windowed_step(largest, rule=True):
    """A chain of three behind a prefix of four, in a window of three: row n2 sees r, n1 and itself alone."""
    own = MaskRule(name="tree", prefix=4, parents=[-1, 0, 1], window=3)
    mask = expand_rule(own, 3)
    nodes = [make_node(0, -1, 0, "root"), make_node(1, 0, 1, "accepted"), make_node(2, 1, 2, "accepted")]
    attention = {"row": 2, "mean": [value / 2 for value in largest], "max": largest, "error": 1e-7}
    return make_step(nodes=nodes, mask=mask if rule else mask.model_copy(update={"rule": None}), attention=attention)


@pytest.mark.parametrize("rule", [True, False])
def test_attention_into_a_masked_earlier_column_is_a_leak(rule):
    tight = prove_row(windowed_step([0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.4], rule), 2)
    assert (tight.earlier_recorded, tight.earlier_leaks, tight.leaks) == (0, (), ())
    leaky = prove_row(windowed_step([0.0, 1e-9, 0.0, 0.0, 0.3, 0.3, 0.4], rule), 2)
    assert (leaky.earlier_leaks, leaky.leaks) == ((1,), ())


def test_a_mask_of_a_light_record_is_its_rule_alone():
    step = proof_step()
    step.mask = step.mask.model_copy(update={"bits": None, "rows": [], "columns": []})
    proof = prove_row(step, 1)
    assert proof.cells[3].recorded is None and proof.cells[3].ruled is True and not proof.differs
    with pytest.raises(IndexError):
        prove_row(step, 3)
