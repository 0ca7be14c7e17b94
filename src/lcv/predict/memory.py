"""Bytes: read from a text, said in words, and counted where they are free."""

from __future__ import annotations

import math
import re
from pathlib import Path

import torch

from lcv.errors import ArgumentError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
AMOUNT = re.compile(r"(\d+\.?\d*|\.\d+)(?:e(\d))?\s*([kmgt]?)(i?)b?", re.IGNORECASE)
WANTED = 'wanted a number of bytes or a text such as "6GB", "512MB" or "1.5GiB"'
# Where Linux tells what is free, and what the group of this process may have.
MEMINFO = Path("/proc/meminfo")
OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")


def parse_bytes(amount: int | float | str, name: str = "max_memory") -> int:
    """6_000_000_000 from itself, from "6GB" or from "6 g"; GiB and the like are powers of 1024."""
    value = math.nan
    if isinstance(amount, str):
        found = AMOUNT.fullmatch(amount.strip())
        if found is not None:
            number, power, unit, binary = found.groups()
            base = UNITS[unit.lower()]
            if binary and unit:
                base = 1024 ** "kmgt".index(unit.lower()) * 1024
            value = float(number) * 10 ** int(power or 0) * base
    elif not isinstance(amount, bool):
        value = float(amount)
    if not math.isfinite(value) or value < 1:
        raise ArgumentError(f"{name} is {amount!r}, {WANTED}")
    return int(value)


def in_words(amount: int) -> str:
    """Bytes in three digits: "312 MB", "3.41 GB", "1 B"."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if amount >= unit:
            digits = amount / unit
            return f"{digits:.0f} {name}" if digits >= 99.95 else f"{digits:.3g} {name}"
    return f"{amount} B"


def free_bytes(device: torch.device) -> int:
    """What this process may still take on a device.

    CPU: what Linux calls available, or what is left of the limit of a container, whichever is
    less. CUDA: what the driver has free, and what torch holds of it without using it.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min([_available(), *_left_in_groups()])


def _available() -> int:
    try:
        lines = MEMINFO.read_text().splitlines()
        return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 2**62  # not Linux: no limit is known, and none is set


def _left_in_groups() -> list[int]:
    """What is left of the memory limits of the control groups that this process is in."""
    try:
        lines = OWN_GROUP.read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":  # version 2: limits hold for all that is below
            home = GROUPS / path.lstrip("/")
            for group in (home, *home.parents):
                if GROUPS in (group, *group.parents):
                    left += _left_in(group, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            # Inside a container its own group is mounted at the top.
            for group in (GROUPS / "memory" / path.lstrip("/"), GROUPS / "memory"):
                left += _left_in(group, *names)
    return left


def _left_in(group: Path, limit: str, usage: str, cache: str) -> list[int]:
    try:
        most = (group / limit).read_text().strip()
        if most == "max":
            return []
        used = int((group / usage).read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        # Files read long ago count as used, but make room when asked to.
        spare = next((int(x.split()[1]) for x in lines if x.split()[0] == cache), 0)
        return [max(0, int(most) - used + spare)]
    except (OSError, ValueError, IndexError):
        return []
