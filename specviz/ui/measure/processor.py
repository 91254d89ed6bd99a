"""How much of a processor's time this process and all that it started have used; Linux alone tells."""

from __future__ import annotations

import os
from pathlib import Path

PARENT, USER, SYSTEM = 1, 11, 12  # fields of /proc/PID/stat behind the command's name


def used_seconds() -> float:
    """Return the processor seconds of this process and of its living descendants."""
    stats = read_stats()
    family = {os.getpid()}
    while grown := {pid for pid, stat in stats.items() if int(stat[PARENT]) in family} - family:
        family |= grown
    ticks = sum(int(stats[pid][USER]) + int(stats[pid][SYSTEM]) for pid in family if pid in stats)
    return ticks / os.sysconf("SC_CLK_TCK")


def read_stats() -> dict[int, list[str]]:
    """Return the fields of every process by its number."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
    return stats
