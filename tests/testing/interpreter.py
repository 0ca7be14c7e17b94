"""Run a test file as a script whose kernels go through Triton's interpreter, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from testing.extras import needs

TESTS = Path(__file__).parents[1]


def interpreted(file: str) -> Any:
    """What the script prints, as JSON. Triton must know before it is imported: a process of its own."""
    needs("triton")
    where = os.pathsep.join((str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")))
    own = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": where}
    done = subprocess.run(
        [sys.executable, file],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
