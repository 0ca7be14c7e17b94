"""Whatever bytes a file holds, a reader gives a sound record or an LcvError that names the file.

Real small files are damaged in the ways that files are (and in some that only an enemy would
think of: checksums set right again after the damage). Seeded, so that a failure comes back; the
message of a failure names the case.
"""

from __future__ import annotations

import faulthandler
import io
import struct
import warnings
import zipfile
import zlib

import h5py
import numpy as np
import pytest
from PIL import Image

import lcv
from data.formats.samples import (
    FLOW_SUFFIXES,
    assert_is_flow,
    assert_is_image,
    png_chunk,
    png_file,
    save_clip,
    some_flow,
    some_rgb,
)
from lcv.data.formats.mask import read_mask
from lcv.data.formats.video import read_video, video_info
from testing.corpus import keep

CASES = 500
VIDEO_CASES = 200
LIMIT = 2**16
NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
IMAGE_KINDS = {
    "png": {},
    "palette.png": {},
    "deep.png": {},
    "jpg": {"quality": 90},
    "progressive.jpg": {"progressive": True},
    "webp": {"lossless": True},
    "lossy.webp": {
        "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    },
    "bmp": {},
    "ppm": {},
    "tiff": {},
}
VIDEO_KINDS = {
    "mp4": {"codec": "mpeg4", "pixels": "yuv420p"},
    "mkv": {"codec": "ffv1", "pixels": "bgr0"},
    "avi": {"codec": "mjpeg", "pixels": "yuvj420p"},
}


def damaged(rng, content, other):
    """One to three wounds: bits, numbers, a cut, a tail, a gap, an echo, a graft."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        # Headers are short and decide much, so half of the wounds go to the front.
        reach = len(content) if rng.random() < 0.5 else min(len(content), 64)
        at = int(rng.integers(max(reach, 1)))
        kind = rng.integers(8)
        if kind == 0 and content:
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and content:
            content[at] = int(rng.integers(256))
        elif kind == 2:
            width = int(rng.choice([1, 2, 4]))
            number = int(rng.choice(NUMBERS)) % 256**width
            content[at : at + width] = number.to_bytes(width, rng.choice(["little", "big"]))
        elif kind == 3:
            del content[at:]
        elif kind == 4:
            content += rng.bytes(int(rng.integers(1, 40)))
        elif kind == 5:
            del content[at : at + int(rng.integers(1, 20))]
        elif kind == 6:
            content[at:at] = content[at : at + int(rng.integers(1, 40))]
        else:
            content[at:] = other[at:]
    return bytes(content)


def repaired_png(rng, content):
    """Damage inside the chunks, then every CRC right again, and sometimes the packing too."""
    out, position = content[:8], 8
    while position + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, position)
        kind = content[position + 4 : position + 8]
        body = content[position + 8 : position + 8 + length]
        if rng.random() < 0.4:
            if kind == b"IDAT" and rng.random() < 0.5:
                body = zlib.compress(damaged(rng, zlib.decompress(body), b""))
            else:
                body = damaged(rng, body, b"")
        out += png_chunk(kind, body)
        position += 12 + length
    return out


def repaired_npz(rng, content):
    """Damage inside the arrays, packed again with the right checksums."""
    memory = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(memory, "w") as new:
        for name in old.namelist():
            body = old.read(name)
            new.writestr(name, damaged(rng, body, b"") if rng.random() < 0.7 else body)
    return memory.getvalue()


REPAIRS = {".png": repaired_png, ".npz": repaired_npz}


def check(read, path):
    """True if the file was read, False if it was refused; anything else fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read(path)
        except lcv.LcvError as error:
            message = str(error)
        else:
            return True
    assert message.startswith(str(path)), message
    return False


def fuzz(tmp_path, name, content, other, read, cases):
    path = tmp_path / name
    path.write_bytes(content)
    assert check(read, path), "the whole file must be read"
    repair = REPAIRS.get(path.suffix)
    counts = {True: 0, False: 0}
    # A hang in a decoder ends the run with a traceback instead of lasting for ever.
    faulthandler.dump_traceback_later(90, exit=True)
    try:
        for case in range(cases):
            rng = np.random.default_rng([case, len(content)])
            mend = repair is not None and case % 2
            path.write_bytes(repair(rng, content) if mend else damaged(rng, content, other))
            try:
                counts[check(read, path)] += 1
            except Exception as error:
                kind = read.__name__.removeprefix("read_as_")
                raise AssertionError(
                    f"case {case}, kept as {keep(kind, path)}: {error!r}"
                ) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert counts[False] > cases // 4, "most damage must be noticed, or this tests nothing"


def read_as_flow(path):
    assert_is_flow(*lcv.read_flow(path, LIMIT))


def read_as_image(path):
    assert_is_image(lcv.read_image(path, LIMIT))


def read_as_mask(path):
    mask = read_mask(path, LIMIT)
    assert mask.dtype == np.uint8
    assert mask.ndim == 2


def read_as_video(path):
    assert video_info(path, LIMIT).width > 0
    for frame in read_video(path, LIMIT):
        assert_is_image(frame)


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_flow(tmp_path, suffix):
    lcv.write_flow(tmp_path / f"a{suffix}", *some_flow(6, 8))
    lcv.write_flow(tmp_path / f"b{suffix}", *some_flow(5, 9, seed=1))
    content, other = ((tmp_path / f"{n}{suffix}").read_bytes() for n in "ab")
    if suffix == ".flo5":
        # HDF5 packs wide: nearly all of a small file is empty, so little of the damage matters.
        content = compact_flo5(tmp_path / "c.flo5")
    fuzz(tmp_path, f"f{suffix}", content, other, read_as_flow, 2 * CASES)


def compact_flo5(path):
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("flow", data=some_flow(6, 8)[0], compression="gzip", fletcher32=True)
    return path.read_bytes()


def picture(name, seed):
    """One of `IMAGE_KINDS` as bytes."""
    rgb = some_rgb(6, 8, seed)
    if name == "deep.png":
        rows = b"".join(b"\0" + line.tobytes() * 2 for line in rgb)
        return png_file(8, 6, 16, 2, rows)
    image = Image.fromarray(rgb)
    if name == "palette.png":
        image = image.quantize(16)
    memory = io.BytesIO()
    kind = {"jpg": "jpeg"}.get(name.split(".")[-1], name.split(".")[-1])
    image.save(memory, kind, **IMAGE_KINDS[name])
    return memory.getvalue()


@pytest.mark.parametrize("name", IMAGE_KINDS)
def test_images(tmp_path, name):
    fuzz(tmp_path, f"f.{name}", picture(name, 0), picture(name, 1), read_as_image, CASES)


def test_masks(tmp_path):
    fuzz(tmp_path, "f.png", picture("palette.png", 0), b"", read_as_mask, CASES)


@pytest.mark.parametrize("name", VIDEO_KINDS)
def test_videos(tmp_path, name):
    contents = []
    for seed in (0, 1):
        frames = [some_rgb(16, 16, seed + i) // 32 * 32 for i in range(3)]
        save_clip(tmp_path / f"base.{name}", frames, **VIDEO_KINDS[name])
        contents.append((tmp_path / f"base.{name}").read_bytes())
    fuzz(tmp_path, f"f.{name}", *contents, read_as_video, VIDEO_CASES)


def test_there_are_enough_cases():
    total = CASES * (2 * len(FLOW_SUFFIXES) + len(IMAGE_KINDS) + 1)
    assert total + VIDEO_CASES * len(VIDEO_KINDS) >= 5000
