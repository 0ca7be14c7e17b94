"""Hold a PNG against its own word, and write the plain ones that flow and masks need.

Decoders forgive: missing rows come out grey or black, a wrong checksum is a warning at most.
`walk_png` reads a file once, in pieces, and refuses it unless every chunk is whole with
the right CRC, the image data inflates to exactly the rows that the header declares, the zlib
checksum holds, and the end chunk is there. What it hands on is stripped to the chunks that carry
pixels, so that a decoder never meets the rest; their data is inflated already, and stored as it is, so
that the decoder need not do it again. Bytes after the end chunk carry no pixels and are ignored.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from lcv.data.formats.checks import check_pixels, check_unpacked
from lcv.errors import FileError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGB with alpha"}
# Adam7: first column, first row, column step, row step of each pass.
PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
PALETTE = 3
# Bytes that are read at a time, inflated at a time, and handed on in a chunk. Small pieces stop a file that
# holds more than it declares early; in large ones, several threads wait less for the interpreter's lock.
READ, PIECE, CHUNK = 1 << 20, 1 << 18, 1 << 24
# Of a zlib stream without compression: what it begins with, the most bytes of a block, an empty last block.
STORED, BLOCK, LAST = b"\x78\x01", 2**16 - 1, b"\1\0\0\xff\xff"
FEWEST_BYTES = 64  # of a chunk, on average, if a file has thousands
LONGEST_KEPT_EXIF = 1 << 16


@dataclass(frozen=True)
class Png:
    """A PNG that passed `walk_png`: its header, how many colours its palette has (0 without), its
    pixel chunks as a file, its EXIF block."""

    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool
    palette: int
    stripped: bytes
    exif: bytes

    @property
    def kind(self) -> str:
        return f"{self.depth}-bit {KINDS[self.colour]}"


def walk_png(path: Path, max_pixels: int) -> Png:
    """Check the PNG at `path` from the first byte to its end chunk; see the module's head."""
    with path.open("rb") as file:
        chunks = _chunks(path, file, path.stat().st_size)
        kind, content = next(chunks)
        if kind != b"IHDR":
            _refuse(path, f"begins with a {kind.decode()} chunk, not with its header (IHDR)")
        width, height, depth, colour, interlaced = _header(path, content)
        check_pixels(path, width, height, max_pixels)
        rows = _Rows(path, width, height, depth, colour, interlaced)
        check_unpacked(path, path.stat().st_size, rows.wanted)
        stripped, exif = [SIGNATURE, framed(kind, content)], b""
        palette, previous = 0, kind
        for kind, content in chunks:
            if kind == b"IDAT":
                if rows.started and previous != kind:
                    _refuse(path, "image data goes on after other chunks")
                if colour == PALETTE and not palette:
                    _refuse(path, "it has palette colours but no palette (PLTE)")
                stripped += (framed(kind, part) for part in rows.feed(content))
            elif kind == b"PLTE":
                if palette or rows.started or len(content) not in range(3, 769, 3):
                    _refuse(path, f"a palette (PLTE) of {len(content)} bytes, or out of place")
                palette = len(content) // 3
                # Beside true colours a palette is only a suggestion.
                if colour == PALETTE:
                    stripped.append(framed(kind, content))
            elif kind == b"eXIf":
                exif = content
            elif kind != b"IEND" and kind[:1].isupper():
                _refuse(path, f"a {kind.decode()} chunk, which must not be here or is unknown")
            previous = kind
    stripped += (framed(b"IDAT", rows.finish()), framed(b"IEND", b""))
    palette = palette if colour == PALETTE else 0
    return Png(width, height, depth, colour, bool(interlaced), palette, b"".join(stripped), exif)


def _chunks(path: Path, file: BinaryIO, size: int) -> Iterator[tuple[bytes, bytes]]:
    """(name, content) of every chunk up to IEND, lengths and checksums checked.

    A chunk is length (4 bytes), name (4 letters, the first a capital if it is critical), content,
    CRC. The content of chunks that nobody needs is checked piece by piece and given as empty.
    """
    if file.read(8) != SIGNATURE:
        raise FileError(f"{path}: does not begin with the PNG signature; this is not a PNG")
    kind, most, end = b"", 1000 + size // FEWEST_BYTES, 8
    while kind != b"IEND":
        most -= 1
        if not most:
            _refuse(path, "it has too many chunks for its size; save it again with another program")
        start = file.read(8)
        if len(start) < 8:
            after = kind.decode() or "signature"
            _refuse(path, f"it ends after its {after}, without the end chunk (IEND): it is cut")
        length, kind = struct.unpack(">I4s", start)
        if not kind.isalpha():
            _refuse(path, f"{kind!r} where a chunk should begin")
        name = kind.decode()
        end += 8 + length + 4
        if end > size:
            _refuse(path, f"its {name} chunk declares {length} bytes, more than the file has left")
        keep = kind[:1].isupper() or (kind == b"eXIf" and length <= LONGEST_KEPT_EXIF)
        crc, kept, left = zlib.crc32(kind), [], length
        while left:
            piece = file.read(min(left, READ))
            if not piece:
                _refuse(path, f"it ends inside its {name} chunk")
            left -= len(piece)
            crc = zlib.crc32(piece, crc)
            if keep:
                kept.append(piece)
        if file.read(4) != struct.pack(">I", crc):
            _refuse(path, f"the checksum of its {name} chunk is wrong")
        yield kind, b"".join(kept)


def _header(path: Path, content: bytes) -> tuple[int, int, int, int, int]:
    if len(content) != 13:
        raise FileError(f"{path}: its PNG header has {len(content)} bytes, wanted 13")
    width, height, depth, colour, compression, filtering, interlaced = struct.unpack(
        ">IIBBBBB", content
    )
    if depth not in DEPTHS.get(colour, ()) or compression or filtering or interlaced > 1:
        raise FileError(
            f"{path}: its PNG header declares depth {depth}, colour type {colour}, compression "
            f"{compression}, filter {filtering}, interlace {interlaced}, which do not exist "
            f"together; the file is damaged"
        )
    return width, height, depth, colour, interlaced


class _Rows:
    """Inflates image data, counts its rows, and stores them again without compression."""

    def __init__(
        self, path: Path, width: int, height: int, depth: int, colour: int, interlaced: int
    ) -> None:
        self.path, self.height = path, height
        bits = depth * CHANNELS[colour]
        passes = PASSES if interlaced else ((0, 0, 1, 1),)
        sizes = [
            (-(-(width - x) // dx), -(-(height - y) // dy))
            for x, y, dx, dy in passes
            if width > x and height > y
        ]
        # Bytes a row, with the one that names its filter, and bytes a pass.
        self.passes = [(1 + -(-w * bits // 8), h * (1 + -(-w * bits // 8))) for w, h in sizes]
        self.wanted = sum(total for _, total in self.passes)
        self.found = 0
        self.started = False
        self.inflate, self.checksum = zlib.decompressobj(), b""
        self.start, self.raw = STORED, bytearray()  # inflated, and not yet handed on

    def feed(self, content: bytes) -> Iterator[bytes]:
        """The same image data without compression, as soon as there is enough for a chunk."""
        self.started = self.started or bool(content)
        self.checksum = (self.checksum + content[-4:])[-4:]  # the last four bytes up to here
        for start in range(0, len(content), PIECE):
            for raw in self._inflate(content[start : start + PIECE]):
                self._count(raw)
                self.raw += raw
                if len(self.raw) >= CHUNK:
                    yield self._stored()

    def _inflate(self, piece: bytes) -> Iterator[bytes]:
        if self.inflate.eof:
            _refuse(self.path, "image data goes on after its end")
        while not self.inflate.eof:
            try:
                raw = self.inflate.decompress(piece, PIECE)
            except zlib.error as error:
                _refuse(self.path, f"image data does not inflate ({error})")
            yield raw
            piece = self.inflate.unconsumed_tail
            # With its input used up, zlib may still hold output back; less than asked is the end.
            if not piece and len(raw) < PIECE:
                break
        if self.inflate.unused_data:
            _refuse(self.path, "image data goes on after its end")

    def _count(self, raw: bytes) -> None:
        if self.found + len(raw) > self.wanted:
            _refuse(self.path, f"there are more rows than the {self.height} declared")
        values, start = np.frombuffer(raw, dtype=np.uint8), 0
        for stride, total in self.passes:
            # This pass lies at start … start + total of all image data; `raw` at self.found.
            low, high = max(self.found, start), min(self.found + len(raw), start + total)
            if low < high:
                first = low + (start - low) % stride
                filters = values[first - self.found : high - self.found : stride]
                if filters.size and filters.max() > 4:
                    _refuse(self.path, f"row filter {filters.max()} does not exist")
            start += total
        self.found += len(raw)

    def finish(self) -> bytes:
        """The end of the data without compression."""
        if self.found < self.wanted:
            _refuse(
                self.path,
                f"image data holds {self.found} of the {self.wanted} bytes that {self.height} "
                f"rows need; rows are missing",
            )
        if not self.inflate.eof:
            # All rows are there, but not the end of the stream with its checksum.
            _refuse(self.path, "image data has no end, its checksum is missing")
        # The file's own checksum was right, or the data would not have inflated to their end.
        return self._stored(LAST + self.checksum)

    def _stored(self, end: bytes = b"") -> bytes:
        """What was inflated since the last time, in blocks that each begin with their length."""
        parts: list[bytes | memoryview] = [self.start]
        raw = memoryview(self.raw)
        for start in range(0, len(raw), BLOCK):
            block = raw[start : start + BLOCK]
            parts += (struct.pack("<BHH", 0, len(block), BLOCK - len(block)), block)
        self.start, self.raw = b"", bytearray()
        return b"".join((*parts, end))


def _refuse(path: Path, reason: str) -> NoReturn:
    raise FileError(f"{path}: damaged PNG: {reason}; fetch or write the file again")


def framed(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG: length, kind, content, checksum."""
    crc = zlib.crc32(content, zlib.crc32(kind))
    return b"".join((struct.pack(">I4s", len(content), kind), content, struct.pack(">I", crc)))


def encode_png(samples: np.ndarray) -> bytes:
    """A PNG of (H, W) or (H, W, 3) samples, uint8 or uint16, without loss.

    Rows are stored as differences to the row above (filter "up"), which packs flow well and
    needs no loop.
    """
    depth = 8 * samples.dtype.itemsize
    colour = 0 if samples.ndim == 2 else 2
    height, width = samples.shape[:2]
    raw = np.ascontiguousarray(samples, dtype=f">u{depth // 8}").view(np.uint8).reshape(height, -1)
    rows = np.full((height, raw.shape[1] + 1), 2, dtype=np.uint8)
    rows[0, 1:] = raw[0]
    np.subtract(raw[1:], raw[:-1], out=rows[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = framed(b"IHDR", header) + framed(b"IDAT", zlib.compress(rows.tobytes(), 6))
    return SIGNATURE + chunks + framed(b"IEND", b"")
