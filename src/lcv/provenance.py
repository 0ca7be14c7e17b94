"""What a number was measured with: version, commit, weights' hash, torch and the machine in words.

Kept beside every result, so that two numbers that differ can be told apart later. Never a path, a
user's or a host's name: a result is made to be shown.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from lcv.models.published import PUBLISHED, sha256_of
from lcv.version import __version__


def provenance(
    weights: str | os.PathLike[str] | None = None, *, device: Any = None
) -> dict[str, Any]:
    """Where a result comes from, as plain values of JSON.

    weights: the file whose name and sha256 are noted
    device:  the torch device that did the work; by default the CPU
    Facts: `commit` is None outside a checkout; `modified` tells whether tracked files differed
    from that commit.
    """
    import torch

    commit, modified = _commit(Path(__file__).resolve().parents[2])
    return {
        "lcv": __version__,
        "commit": commit,
        "modified": modified,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device_words(device),
        "threads": torch.get_num_threads(),
        "weights": None if weights is None else weights_words(weights),
    }


def weights_words(weights: str | os.PathLike[str]) -> dict[str, Any]:
    """A file of weights: its name without its folder, its hash, and what it was published as."""
    path = Path(weights)
    sha256 = sha256_of(path)
    published = next((name for name, each in PUBLISHED.items() if each.sha256 == sha256), None)
    return {"file": path.name, "sha256": sha256, "published": published}


def state_sha256(model: Any) -> str:
    """A hash of a network's parameters and buffers by name, whatever file they came in."""
    import torch

    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        flat = value.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def device_words(device: Any = None) -> str:
    """The device as its maker calls it: "NVIDIA H200", or the processor and its cores."""
    import torch

    device = torch.device("cpu" if device is None else device)
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    if device.type != "cpu":
        return str(device.type)
    return f"{_processor()}, {os.cpu_count()} cores"


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


@functools.cache
def _commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit of our own checkout and whether tracked files differ from it; asked once.

    An installed package lies in no checkout of ours, though perhaps inside someone else's: only a
    `.git` at the very root counts.
    """
    if not (root / ".git").exists():
        return None, None
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return (commit or None), (None if changes is None else bool(changes))


def _git(root: Path, *words: str) -> str | None:
    """What git answers; None where there is no git, or it refuses."""
    command = ["git", "-C", str(root), *words]
    # A lock taken only to refresh the index would disturb whoever works in the checkout.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, env=environment, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
