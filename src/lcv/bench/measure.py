"""One cell, measured in this process: `python -m lcv.bench.measure CELL`, which prints JSON.

Weights are random and frames noise: neither time nor memory depends on them. The first pair gives
the peak of memory, above what the process held before it, and warms everything up; the pairs after
it are timed, from frames in memory to flow in memory. On a CPU the peak is Linux's mark (elsewhere
it is unknown), on CUDA that of torch's allocator.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every timed pair, the peak in bytes or None, and what the planner predicted."""
    import numpy as np
    import torch

    import lcv
    from lcv.memory import measured
    from lcv.models.build import spec_of
    from lcv.provenance import provenance

    torch.manual_seed(0)
    network = lcv.build(cell["model"], cell["inner_product"])
    device = torch.device(cell["device"])
    predictor = lcv.Predictor(
        network, device=device, iters=cell["iters"], strategy=cell["strategy"]
    )
    size = (2, cell["height"], cell["width"], 3)
    first, second = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    with measured(device) as peak:
        result = predictor(first, second)
    seconds = []
    for _ in range(cell["repeats"]):
        start = time.perf_counter()
        predictor(first, second)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": seconds,
        "peak_bytes": peak[0] if peak else None,
        "foretold_bytes": None if result.plan is None else result.plan.bytes,
        "source": spec_of(network).source,
        "provenance": provenance(device=device),
    }


def main(cell: str) -> int:
    """Print the numbers; or, to the other stream, why there are none, in one line."""
    try:
        print(json.dumps(measure(json.loads(cell))))
    except Exception as error:  # torch raises many kinds, for lack of memory above all
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
