"""The mask of a small ConFu step as a 0/1 matrix: two soft rows, one cached token, a root with two drafts."""

import torch

from specviz.decoding.layout import RowLayout
from specviz.decoding.masks import MaskBuilder
from specviz.mask_trace import MaskRule, expand_rule
from specviz.target.cache import RowCache

# columns: soft soft | x0 | root d1 d2 | con of root, of d1, of d2
ALL_NODES = [
    "001 100 000",
    "001 110 000",
    "001 101 000",
    "111 100 100",
    "111 110 010",
    "111 101 001",
]
ROOT_ONLY = [
    "001 100 0",
    "001 110 0",
    "001 101 0",
    "111 100 1",
]


def build(layout: RowLayout) -> list[list[int]]:
    soft = [(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4))]
    cache = RowCache(1, 1, 8, soft)
    cache.lengths = [1]
    return MaskBuilder().build([layout], cache, torch.device("cpu"))[0, 0].int().tolist()


def cells(lines: list[str]) -> list[list[int]]:
    return [[int(cell) for cell in line.replace(" ", "")] for line in lines]


def test_a_contemplate_token_behind_every_node():
    assert build(RowLayout((-1, 0, 0), k=1, kind="contemplate")) == cells(ALL_NODES)


def test_a_contemplate_token_behind_the_root_alone():
    assert build(RowLayout((-1, 0, 0), k=1, kind="contemplate", carriers=(0,))) == cells(ROOT_ONLY)


def test_the_traced_rule_gives_the_same_cells_with_the_prefix_first():
    rule = MaskRule(name="contemplate", prefix=1, parents=[-1, 0, 0], k=1, s=2)
    expected = [[row[2], row[0], row[1], *row[3:]] for row in cells(ALL_NODES)]
    assert [[int(cell) for cell in row] for row in expand_rule(rule).matrix()] == expected


def test_a_contemplate_token_sits_one_behind_its_node():
    layout = RowLayout((-1, 0, 0, 1), k=1, kind="contemplate")
    assert layout.positions(5) == [5, 6, 6, 7, 6, 7, 7, 8]
