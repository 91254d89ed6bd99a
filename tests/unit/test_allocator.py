"""Freed memory is kept: blocks as large as a training's cost page faults once, not every time."""

import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource, sys
import numpy
from specviz.training.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
numpy.ones(2**24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    numpy.ones(2**24)  # 128 MiB
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the settings are those of glibc")
def test_large_blocks_cost_page_faults_once():
    given_back, kept = (_faults(how) for how in ("given back", "kept"))
    assert kept < given_back / 4


def _faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", COUNT_FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)
