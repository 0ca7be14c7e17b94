"""Every network with every inner product learns one painted pair: the full grid, for a GPU.

    python benchmarks/overfit_grid.py [--device cuda] [--markdown grid.md]

EPE must fall below 10 % of its start and below 10 % of the error of zero flow (some networks start
far above that); exit code 1 if a cell does not. CI runs a part of the grid at small sizes
(tests/models/test_overfit.py). Cells: EPE at the first → at the last step (steps).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from lcv.inner_product import INNER_PRODUCTS
from lcv.models.registry import NETWORKS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from testing.overfit import overfit

SIZE = (128, 192)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", nargs="*", default=list(NETWORKS))
    parser.add_argument("--most-steps", type=int, default=600)
    parser.add_argument("--markdown", help="write the table here too")
    options = parser.parse_args()
    kinds = list(INNER_PRODUCTS)
    rows = ["| network | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    good = True
    for name in options.models:
        cells = []
        for kind in kinds:
            start = time.perf_counter()
            result = overfit(
                name, kind, options.most_steps, device=options.device, size=SIZE, beat_zero=True
            )
            good &= result.last < 0.1 * min(result.first, result.zero)
            cells.append(f"{result.first:.2f} → {result.last:.2f} ({result.steps})")
            print(f"{name} {kind}: {cells[-1]}, {time.perf_counter() - start:.1f} s", flush=True)
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    table = "\n".join(rows) + "\n"
    print(table)
    if options.markdown:
        Path(options.markdown).write_text(table, encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
