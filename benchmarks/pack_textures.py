"""A folder of photographs as small WebP files, for machines with little room or without PyAV.

    python benchmarks/pack_textures.py PHOTOGRAPHS OUT [--quality 90]

Each becomes the 512 × 512 tile that `load_bank` would cut from it, at a tenth to a half of the bytes,
in the same order. The folder OUT is one of textures like any other (`--data.textures OUT`), and
each tile is held out if its photograph is: a number in the file is changed until the file's hash
says so. Packing again, with the same Pillow and libwebp, gives the same files; training on the
photographs themselves is the same but for what compression loses, which is printed.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from pathlib import Path

import torch
from PIL import Image

from lcv.data.formats.image import read_image
from lcv.data.synthetic.textures import IMAGES, TILE, is_held_out, load_bank
from lcv.errors import LcvError


def pack(source: Path, output: Path, quality: int) -> int:
    """Write them all; how many bytes they are."""
    output.mkdir(parents=True)
    size = 0
    for path in sorted(p for p in source.iterdir() if p.suffix.lower() in IMAGES):
        image = Image.fromarray(read_image(path))
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        tile = image.crop((left, top, left + side, top + side))
        tile = tile.resize((TILE, TILE), Image.Resampling.BICUBIC)
        packed = output / f"{path.name}.webp"
        for number in itertools.count():
            memory = io.BytesIO()
            tile.save(memory, "WEBP", quality=quality, xmp=str(number).encode())
            packed.write_bytes(memory.getvalue())
            if is_held_out(packed) == is_held_out(path):
                break
        size += packed.stat().st_size
    return size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a folder of photographs")
    parser.add_argument("output", type=Path, help="a folder that is not there yet")
    parser.add_argument("--quality", type=int, default=90, help="of WebP (90)")
    options = parser.parse_args()
    try:
        size = pack(options.source, options.output, options.quality)
        banks = [load_bank(f, "all", halved=False) for f in (options.source, options.output)]
        changes = []
        for pair in zip(*banks, strict=True):
            before, after = (image.float() for image in pair)
            sharpness = (image.diff(2).abs().mean() for image in (before, after))
            changes.append([(before - after).abs().mean(), *sharpness])
        lost, before, after = torch.tensor(changes).mean(0)
    except (LcvError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"{options.output}: {len(changes)} textures, {size / 2**20:.1f} MiB; {lost:.2f} grey levels "
        f"from the photographs in the mean, mean |∆₂| {before:.2f} before and {after:.2f} after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
