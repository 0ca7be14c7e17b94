"""What the page takes, in numbers and in the words that stand on it."""

from __future__ import annotations

LONGEST_SIDE = 640
"""Frames with a longer side are reduced to this."""
MOST_PIXELS = 24_000_000
"""A picture or film that declares more is refused unread."""
MOST_BYTES = 64 * 2**20
"""Of one file, and of what a page sends that is no file a thousandth."""
MOST_UPLOAD = 2 * MOST_BYTES + 2**16
"""Of one upload: two files and the words around them."""
MOST_KEPT_FILES = 500
MOST_KEPT_BYTES = 512 * 2**20
"""Of everything in the page's folder; the oldest files are removed to make room for an upload."""
LONGEST_FILM = 60.0
"""Seconds that a film may say of itself."""
MOST_FRAMES = 60
"""Frames that are taken from the beginning of a film."""
DECODE_SECONDS = 30.0
"""A decoder that takes longer is ended."""
MOST_WAITING = 8
"""Requests that may wait in the queue; one is worked on at a time."""
MOST_SESSIONS = 16
"""Open pages whose frames are kept; the oldest is forgotten first."""
KEPT_SECONDS = 3600
"""Pictures that the page has shown are deleted after this, and all at its end."""

IN_WORDS = (
    f"Two pictures (PNG, JPEG, WebP, BMP, PPM) of one size, or one film, each at most "
    f"{MOST_BYTES // 2**20} MB and {MOST_PIXELS // 10**6} million pixels a frame. Frames longer than "
    f"{LONGEST_SIDE} pixels are reduced. Of a film of at most {LONGEST_FILM:.0f} s the first "
    f"{MOST_FRAMES} frames are taken."
)
