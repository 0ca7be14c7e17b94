"""A file costs memory for the pixels it may have, never for those it claims.

Readers run in a process of their own, whose greatest memory (VmHWM) may grow beyond its level
after the imports by 64 MiB, and by 32 bytes for every pixel that was declared and admitted.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import h5py
import numpy as np
from PIL import Image

import lcv
from data.formats.samples import (
    FLOW_SUFFIXES,
    png_chunk,
    png_file,
    save_clip,
    some_flow,
    some_rgb,
)
from lcv.data.formats.image import write_image
from testing.peak import costs

BASE = 64 * 2**20
PER_PIXEL = 32


def hostile_flows():
    """(name, content) of small files that claim to be vast, for each format of flow."""
    side = 16000  # within the limit of 2^28 pixels, so that only the file's length can tell
    tiny = bytes(1000)
    yield "a.flo", b"PIEH" + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + tiny
    yield "b.flo", b"PIEH" + struct.pack("<ii", side, side) + tiny
    yield "a.pfm", b"PF\n999999999 999999999\n-1.0\n" + tiny
    yield "b.pfm", b"PF\n16000 16000\n-1.0\n" + tiny
    yield "a.png", png_file(30000, 30000, 16, 2, tiny)
    yield "b.png", png_file(side, side, 16, 2, tiny)
    yield "bomb.png", png_file(8, 6, 16, 2, bytes(2**27))
    text = png_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(2**27)))
    yield "text.png", png_file(8, 6, 16, 2, tiny, before=text)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, 2), }\n"
    for name, size in {"a": 10**9, "b": side}.items():
        text = (header % (size, size)).encode()
        array = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + tiny
        yield f"{name}.npy", array
        yield f"{name}.npz", archive(array)
        # The archive's list of contents lies along with the array's header.
        lying = archive(array).replace(
            struct.pack("<I", len(array)),
            struct.pack("<I", (len(array) - 1000 + 8 * size * size) % 2**32),
        )
        yield f"lying-{name}.npz", lying
    yield "long.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1) + tiny
    yield "bomb.npz", archive(bytes(2**27))
    # Its list of contents claims more packed bytes than the whole archive has.
    zeros = (header % (4096, 4095)).encode()
    zeros = b"\x93NUMPY\1\0" + struct.pack("<H", len(zeros)) + zeros + bytes(8 * 4096 * 4095)
    yield "lying-packed.npz", lying_about_packed(zeros)
    # Whole and honest about their size, but all zeros: a hundred kilobytes that unpack to a hundred megabytes.
    zeros = (header % (4000, 4000)).encode()
    zeros = b"\x93NUMPY\1\0" + struct.pack("<H", len(zeros)) + zeros + bytes(8 * 4000**2)
    yield "zeros.npz", archive(zeros)
    yield "zeros.png", png_file(4000, 4000, 16, 2, bytes(4000 * (6 * 4000 + 1)))


def archive(array):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("flow.npy", array)
    return memory.getvalue()


def lying_about_packed(array):
    content = archive(array)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        packed = file.getinfo("flow.npy").compress_size
    return content.replace(struct.pack("<I", packed), struct.pack("<I", 2**22))


def hostile_flo5(folder):
    with h5py.File(folder / "a.flo5", "w") as file:
        file.create_dataset("flow", (10**6, 10**6, 2), "<f4", chunks=(100, 100, 2))
    with h5py.File(folder / "b.flo5", "w") as file:
        file.create_dataset("flow", (16000, 16000, 2), "<f4")
    # Little flow in a vast chunk, which would be unpacked whole.
    with h5py.File(folder / "c.flo5", "w") as file:
        layout = {"chunks": (4096, 4096, 2), "maxshape": (None, None, 2), "compression": "gzip"}
        file.create_dataset("flow", data=some_flow()[0], **layout)
    return [folder / f"{name}.flo5" for name in "abc"]


def hostile_images():
    """Likewise for each kind of picture, with sizes whose pixels the data cannot hold."""
    rgb = Image.fromarray(some_rgb())
    for name, side in {"a": 30000, "b": 16000}.items():
        yield f"{name}.png", png_file(side, side, 8, 2, bytes(99))
        yield f"{name}.ppm", b"P6 %d %d 255\n" % (side, side) + bytes(99)
        for kind, at, layout in (("bmp", 18, "<ii"), ("jpeg", None, ">HH")):
            memory = io.BytesIO()
            rgb.save(memory, kind)
            content = memory.getvalue()
            at = content.index(b"\xff\xc0") + 5 if at is None else at
            yield (
                f"{name}.{kind}",
                content[:at]
                + struct.pack(layout, side, side)
                + content[at + struct.calcsize(layout) :],
            )
    yield "bomb.png", png_file(8, 6, 8, 2, bytes(2**27))
    # A picture of 16×16 in one tile, which unpacks to 200 MB.
    side = 14000 // 16 * 16
    pack = zlib.compressobj(1)
    packed = b"".join(pack.compress(bytes(side)) for _ in range(side)) + pack.flush()
    tags = {322: side, 323: side, 324: 8, 325: len(packed), 259: 8}
    yield "tile.tif", tiff(tags, packed)
    # Its tags hold the same megabyte again and again, or so it says.
    yield (
        "tags.tif",
        tiff({324: 8}, bytes(2**20), more=[(t, 1, 2**20, 8) for t in range(999, 1999)]),
    )
    page = tiff({273: 8, 279: 256}, bytes(256))
    length = len(page) - 264
    following = (struct.pack("<I", 264 + (number + 1) * length) for number in range(100_000))
    yield "chain.tif", page[:264] + b"".join(page[264:-4] + place for place in following)
    rgb = Image.fromarray(np.zeros((1600, 1600), np.uint8))
    rgb.save(memory := io.BytesIO(), "jpeg", progressive=True)
    content = memory.getvalue()
    yield (
        "scans.jpg",
        content[:-2] + 3000 * content[content.rindex(b"\xff\xda") : -2] + b"\xff\xd9",
    )


def tiff(tags, data, more=()):
    """A TIFF of 16×16 grey pixels with these tags; `data` begins at byte 8."""
    plain = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 277: 1, **tags}
    entries = sorted([*((tag, 4, 1, value) for tag, value in plain.items()), *more])
    listed = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    head = b"II*\0" + struct.pack("<I", 8 + len(data)) + data
    return head + struct.pack("<H", len(entries)) + listed + bytes(4)


def hostile_webp(folder):
    """Two small frames on a canvas of 4096×4096."""
    frames = [Image.fromarray(some_rgb(16, 16, seed)) for seed in (0, 1)]
    frames[0].save(memory := io.BytesIO(), "webp", save_all=True, append_images=frames[1:])
    content = bytearray(memory.getvalue())
    content[24:30] = 2 * (4095).to_bytes(3, "little")
    (folder / "a.webp").write_bytes(content)
    return folder / "a.webp"


def hostile_video(folder):
    """An AVI and an MP4 whose headers declare more than the limit, and a film of one large still."""
    paths = []
    for suffix in ("avi", "mp4"):
        path = folder / f"a.{suffix}"
        save_clip(path, [some_rgb(16, 24)] * 3, codec="mjpeg", pixels="yuvj420p")
        content = bytearray(path.read_bytes())
        if suffix == "avi":
            at = content.index(b"strf") + 12
            content[at : at + 8] = struct.pack("<ii", 30000, 30000)
        start = 0
        while (start := content.find(b"\xff\xc0", start) + 1) > 0:
            content[start + 4 : start + 8] = struct.pack(">HH", 30000, 30000)
        path.write_bytes(content)
        paths.append(path)
    still = np.zeros((4096, 4096, 3), np.uint8)
    save_clip(folder / "still.mp4", [still], codec="mpeg4", pixels="yuv420p")
    return [*paths, folder / "still.mp4"]


def test_what_is_refused_costs_nothing(tmp_path):
    jobs = []
    for kind, files in (("flow", hostile_flows()), ("image", hostile_images())):
        for name, content in files:
            path = tmp_path / f"{kind}-{name}"
            path.write_bytes(content)
            jobs.append((kind, path))
            if name.endswith(".png"):
                jobs.append(("mask", path))
    jobs += [("flow", path) for path in hostile_flo5(tmp_path)]
    jobs += [("video", path) for path in hostile_video(tmp_path)]
    jobs.append(("video", hostile_webp(tmp_path)))
    for (kind, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(str(path)), f"{kind} {path.name}: {outcome}"
        assert growth < BASE, f"{kind} {path.name}: {growth / 2**20:.0f} MiB ({outcome})"
        assert seconds < 5, f"{kind} {path.name}: {seconds:.1f} s ({outcome})"


def test_what_is_read_costs_little_more_than_itself(tmp_path):
    height, width = 2**10, 2**11
    flow = np.zeros((height, width, 2), dtype=np.float32)
    jobs = []
    for suffix in FLOW_SUFFIXES:
        lcv.write_flow(tmp_path / f"flow{suffix}", flow)
        jobs.append(("flow", tmp_path / f"flow{suffix}"))
    np.save(tmp_path / "wide.npy", flow.astype(np.float64))
    jobs.append(("flow", tmp_path / "wide.npy"))
    rgb = np.zeros((height, width, 3), dtype=np.uint8)
    for suffix in (".png", ".ppm", ".jpg"):
        write_image(tmp_path / f"image{suffix}", rgb)
        jobs.append(("image", tmp_path / f"image{suffix}"))
    for name in ("image.webp", "image.bmp", "progressive.jpg"):
        Image.fromarray(rgb).save(tmp_path / name, progressive=True)
        jobs.append(("image", tmp_path / name))
    jobs += [("image", tmp_path / "flow.png"), ("mask", tmp_path / "image.png")]
    for (kind, path), (outcome, growth, _) in zip(jobs, costs(jobs), strict=True):
        assert outcome == "read", f"{kind} {path.name}: {outcome}"
        budget = BASE + PER_PIXEL * height * width
        assert growth < budget, f"{kind} {path.name}: {growth / 2**20:.0f} MiB"


def test_a_film_costs_no_more_than_a_few_of_its_frames(tmp_path):
    frame = np.zeros((720, 1280, 3), dtype=np.uint8)
    save_clip(tmp_path / "a.mp4", [frame] * 80, codec="mpeg4", pixels="yuv420p")
    ((outcome, growth, _),) = costs([("video", tmp_path / "a.mp4")])
    assert outcome == "read"
    assert 80 * frame.nbytes > 2 * (BASE + PER_PIXEL * 720 * 1280), "else this proves nothing"
    assert growth < BASE + PER_PIXEL * 720 * 1280


def test_a_webp_is_weighed_before_it_is_opened(tmp_path):
    # Its canvas is made when the file is opened, and it may claim up to 2^14 a side.
    memory = io.BytesIO()
    Image.fromarray(some_rgb()).save(memory, "webp", lossless=True)
    content = bytearray(memory.getvalue())
    (bits,) = struct.unpack_from("<I", content, 21)
    sides = (2**11, 2**13, 2**14 - 1)
    for side in sides:
        changed = bits >> 28 << 28 | (side - 1) << 14 | (side - 1)
        content[21:25] = struct.pack("<I", changed)
        (tmp_path / f"{side}.webp").write_bytes(content)
    found = costs([("image", tmp_path / f"{side}.webp") for side in sides])
    for side, (outcome, growth, _) in zip(sides, found, strict=True):
        assert outcome.startswith(str(tmp_path / f"{side}.webp"))
        assert growth < BASE + PER_PIXEL * sides[0] ** 2
