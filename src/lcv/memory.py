"""Memory: how much is free, how much a piece of code takes, and amounts in words."""

from __future__ import annotations

import ctypes
import gc
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError

UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
AMOUNT = re.compile(r"([\d.]+(?:e\d)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
# Where Linux says what is free, what this process takes, and what its control group may have.
MEMINFO, OWN, GROUPS = Path("/proc/meminfo"), Path("/proc/self"), Path("/sys/fs/cgroup")
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def parse_bytes(amount: int | float | str, name: str = "max_memory") -> int:
    """6_000_000_000 from itself, from "6GB" or from "6 g"; GiB and the like are powers of 1024."""
    value = math.nan
    with suppress(ValueError):
        if isinstance(amount, str) and (found := AMOUNT.fullmatch(amount.strip())):
            number, unit, binary = found.groups()
            value = float(number) * (1024 if binary else 1000) ** UNITS[unit.lower()]
        elif not isinstance(amount, bool | str):
            value = float(amount)
    if not math.isfinite(value) or value < 1:
        wanted = 'a number of bytes or a text such as "6GB", "512MB" or "1.5GiB"'
        raise ArgumentError(f"{name} is {amount!r}, wanted {wanted}")
    return int(value)


def in_words(amount: int) -> str:
    """Bytes in three digits: "312 MB", "3.41 GB", "1 B"."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if amount >= unit:
            digits = amount / unit
            return f"{digits:.0f} {name}" if digits >= 99.95 else f"{digits:.3g} {name}"
    return f"{amount} B"


@contextmanager
def measured(device: Any) -> Iterator[list[int]]:
    """A list that holds, after the block, the bytes that the block took at most.

    device: a torch device. On a CPU the number is Linux's; elsewhere the list stays empty.
    """
    peak: list[int] = []
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield peak
        peak.append(torch.cuda.max_memory_allocated(device) - before)
        return
    try:
        (OWN / "clear_refs").write_text("5")  # sets the high-water mark back to now
        before = _kilobytes(OWN / "status", "VmRSS")
    except OSError:  # not Linux
        yield peak
        return
    yield peak
    peak.append(_kilobytes(OWN / "status", "VmHWM") - before)


def return_freed_memory() -> None:
    """Have malloc give large blocks back when they are freed, instead of keeping holes.

    This makes a peak predictable. It costs time below a megapixel, up to a third, so it is done
    only where a limit was set.
    """
    with suppress(OSError, AttributeError):  # not glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 4 * 2**20)
        libc.mallopt(M_TRIM_THRESHOLD, 64 * 2**20)


def give_back_freed(device: Any) -> None:
    """Return what is freed but still held, now, so that what comes next is measured alone."""
    gc.collect()
    if device.type == "cuda":
        import torch

        torch.cuda.empty_cache()
        return
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def free_bytes(device: Any) -> int:
    """What this process may still take on a torch device.

    CPU: what Linux calls available, or what is left of a container's limit, whichever is less.
    CUDA: what the driver has free, and what torch holds of it without using it.
    """
    if device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + held)
    try:
        available = _kilobytes(MEMINFO, "MemAvailable")
    except OSError:
        available = 2**62  # not Linux: no limit is known, and none is set
    return min([available, *_left_in_groups()])


def _kilobytes(path: Path, key: str) -> int:
    """A number of kB from a file of Linux's, in bytes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))


def _left_in_groups() -> list[int]:
    """What is left of the memory limits of the control groups that this process is in."""
    left = []
    with suppress(OSError):
        for line in (OWN / "cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":  # version 2: limits hold for all that is below
                home = GROUPS / path.lstrip("/")
                groups = [each for each in (home, *home.parents) if GROUPS in (each, *each.parents)]
                names = "memory.max", "memory.current", "inactive_file"
            elif "memory" in controllers.split(","):  # inside a container, mounted at the top
                groups = [GROUPS / "memory" / path.lstrip("/"), GROUPS / "memory"]
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            else:
                continue
            left += [each for group in groups for each in _left_in(group, *names)]
    return left


def _left_in(group: Path, limit: str, usage: str, cache: str) -> list[int]:
    with suppress(OSError, ValueError, IndexError):  # "max" is no number: there is no limit
        most, used = (int((group / name).read_text()) for name in (limit, usage))
        lines = (group / "memory.stat").read_text().splitlines()
        # Files read long ago count as used, but make room when asked to.
        spare = next((int(x.split()[1]) for x in lines if x.split()[0] == cache), 0)
        return [max(0, most - used + spare)]
    return []
