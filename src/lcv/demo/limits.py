"""What the page takes, in numbers and in the words that stand on it."""

from __future__ import annotations

SIDES = (640, 1024, 1920)
"""What the longer side of frames may be reduced to: the first unless a larger one is asked for."""
MOST_PIXELS = 24_000_000
"""A picture or video that declares more is refused unread."""
MOST_BYTES = 64 * 2**20
"""Of one file, and of what a page sends that is no file a thousandth."""
MOST_UPLOAD = 2 * MOST_BYTES + 2**16
"""Of one upload: two files and the words around them."""
MOST_KEPT_FILES = 500
MOST_KEPT_BYTES = 512 * 2**20
"""Of everything in the page's folder; the oldest files are removed to make room for an upload."""
LONGEST_VIDEO = 60.0
"""Seconds that a video may say it lasts."""
MOST_FRAMES = 60
"""Frames that are taken from the beginning of a video."""
DECODE_SECONDS = 30.0
"""A decoder that takes longer is ended."""
MOST_WAITING = 8
"""Requests that may wait in the queue; one is worked on at a time."""
MOST_SESSIONS = 4
"""Open pages whose frames are kept; the oldest is forgotten first."""
KEPT_SECONDS = 3600
"""Uploads that no page has read are deleted after this, and everything when the page's program ends."""

IN_WORDS = (
    f"Two images (PNG, JPEG, WebP, BMP, PPM) of one size, or one video, each at most "
    f"{MOST_BYTES // 2**20} MB and {MOST_PIXELS // 10**6} million pixels a frame. Frames are reduced to "
    f"{SIDES[0]} pixels on the longer side, or to {SIDES[-1]} on request. A video may last "
    f"{LONGEST_VIDEO:.0f} s; its first {MOST_FRAMES} frames are used."
)
