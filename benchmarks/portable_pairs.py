"""Any datasets with truth as plain PNG and NPZ, for machines that cannot decode KITTI's flow.

    python benchmarks/portable_pairs.py DATASETS OUT [--only kitti2015 sintel*] [--limit 20]

OUT has a folder a pair (frame1.png, frame2.png, flow.npz with `valid`) and pairs.txt, the list that
`lcv eval`, `lcv robust` and `lcv ablate --test` read. Reading them back needs numpy and Pillow only:
16-bit PNG, and JPEG, need PyAV.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.errors import LcvError
from lcv.evaluate.sources import records_in


def write_pairs(source: str, output: Path, only: list[str], limit: int | None) -> int:
    """Write them all; how many they are."""
    output.mkdir(parents=True)
    lines = ["# image1 image2 flow"]
    for record in records_in([source], only=only, limit=limit):
        sample = record.read()
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{record.dataset}-{record.name}")
        folder = output / name
        folder.mkdir()
        write_image(folder / "frame1.png", sample.image1)
        write_image(folder / "frame2.png", sample.image2)
        write_flow(folder / "flow.npz", sample.flow, sample.valid)
        lines.append(f"{name}/frame1.png {name}/frame2.png {name}/flow.npz")
        print(f"{name}: {int(sample.valid.sum())} pixels with truth")
    (output / "pairs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="a folder of datasets with truth")
    parser.add_argument("output", type=Path, help="a folder that is not there yet")
    parser.add_argument("--only", nargs="+", default=[], help="as in kitti2015 or middlebury/Gr*")
    parser.add_argument("--limit", type=int, help="at most so many pairs of each dataset")
    options = parser.parse_args()
    try:
        count = write_pairs(options.source, options.output, options.only, options.limit)
        print(f"{options.output}: {count} pairs")
    except (LcvError, FileExistsError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
