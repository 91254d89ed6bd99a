"""Memory between the steps of a training on a CPU: what one step frees is kept for the next.

glibc maps every large block anew and gives it back once it is freed, and each page of a new block costs a fault. A step
of training asks for gigabytes in such blocks, the same ones step after step.
"""

from __future__ import annotations

import ctypes
import os
import sys

# Names and numbers of glibc's <malloc.h>.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
KEPT_BYTES = 2**31 - 1  # at the end of the heap; mallopt takes an int
GROWTH_BYTES = 2**28


def keep_freed_memory() -> bool:
    """Ask the C library to keep freed memory, and torch to ask for large pages; say whether there was one to ask."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # read by torch with its first large block
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, KEPT_BYTES), (M_TOP_PAD, GROWTH_BYTES))
    return all(mallopt(name, value) == 1 for name, value in settings)
