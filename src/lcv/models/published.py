"""Fetch RAFT's published checkpoints by name: resumable, and refused unless their hash is right.

The authors publish one archive of all of them. A broken download is kept and continued by the next
call; nothing appears under a checkpoint's name before its sha256 has been verified. Of several
processes that want one archive, one downloads and the others wait for it.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.files import only_one, whole_file

RAFT_ARCHIVE = "https://dl.dropboxusercontent.com/s/4j4z58wuv8o0mfz/models.zip"

MOST_ARCHIVE = 100 * 10**6
"""Bytes; the archive holds four checkpoints of 21 MB and one of 4, and some words."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Published:
    """A checkpoint that others published: where it is and how to know it is the right one."""

    model: str
    address: str
    member: str
    sha256: str
    size: int
    data: str
    licence: str = "BSD-3-Clause"


PUBLISHED = {
    "raft-sintel": Published(
        "raft-large",
        RAFT_ARCHIVE,
        "models/raft-sintel.pth",
        "90630d2e7d488a0d3ccb5e8194524850c4c05c732ea4ff99799822c7fa5c5cbf",
        21_108_000,
        "FlyingChairs, FlyingThings3D, then Sintel, KITTI, HD1K and Things mixed",
    ),
    "raft-kitti": Published(
        "raft-large",
        RAFT_ARCHIVE,
        "models/raft-kitti.pth",
        "b9d170362415e1a27bd8402ee966a3ddf0d60df9b2df2c0b4949f5ced490a9e6",
        21_108_000,
        "raft-sintel, fine-tuned on KITTI 2015",
    ),
    "raft-small-things": Published(
        "raft-small",
        RAFT_ARCHIVE,
        "models/raft-small.pth",
        "c7d41b9cc88442bb8aa911dbb33086dac55a226394b142937ff22d5578717332",
        3_984_814,
        "FlyingChairs, FlyingThings3D",
    ),
}


def cache_folder() -> Path:
    """Where fetched checkpoints are kept: the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lcv"


def fetch(name: str, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """The verified file of a published checkpoint, fetched if it is not there yet.

    progress: called with the bytes done and the total (None where the server does not say)
    """
    if name not in PUBLISHED:
        raise ArgumentError(f"unknown checkpoint {name!r}; published are {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    folder = folder or cache_folder()
    path = folder / Path(published.member).name
    if path.exists():
        verify(path, published.sha256)
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"{folder}: this folder for fetched checkpoints cannot be made ({error.strerror}); "
            f"set XDG_CACHE_HOME to one that can be written"
        ) from None
    archive = folder / (Path(published.address).name + ".part")
    with only_one(archive):
        if path.exists():  # fetched by the one that was waited for
            verify(path, published.sha256)
            return path
        download(published.address, archive, progress)
        _unpack(archive, published, path)
        for other in PUBLISHED.values():
            target = folder / Path(other.member).name
            if other.address == published.address and not target.exists():
                _unpack(archive, other, target)
        archive.unlink()
    return path


def sha256_of(path: Path) -> str:
    """The hash of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def verify(path: Path, sha256: str) -> None:
    """Refuse a file that is not the one that was published."""
    found = sha256_of(path)
    if found != sha256:
        raise WeightsError(
            f"{path}: its sha256 is {found}, wanted {sha256}. It is not the published file; "
            f"remove it and fetch it again."
        )


class _HttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follows a server elsewhere only where nobody on the way can read or change what comes."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str):  # type: ignore[no-untyped-def]
        if not newurl.lower().startswith("https://"):
            raise FileError(
                f"{req.full_url}: the server sends us on to {newurl}, wanted an https address"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    address: str, path: Path, progress: Progress | None = None, most: int = MOST_ARCHIVE
) -> None:
    """The content of an address into `path`, at most so many bytes, going on from what is there."""
    done = path.stat().st_size if path.exists() else 0
    if done > most:  # no part of it: another's file, or an attempt of an older version
        done = 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.build_opener(_HttpsAlone).open(request, timeout=30) as answer:
            if done and answer.status != 206:  # the server begins anew, so do we
                done = 0
            length = answer.headers.get("Content-Length") or ""
            total = done + int(length) if length.isdecimal() and len(length) < 16 else None
            if (total or 0) > most:
                raise FileError(f"{address}: has {total} bytes, wanted at most {most}")
            with _opened(path, "ab" if done else "wb") as file:
                while block := answer.read(1 << 18):
                    if done + len(block) > most:
                        path.unlink()
                        raise FileError(f"{address}: sends more than the {most} bytes it may have")
                    _write(file, block, path)
                    done += len(block)
                    if progress:
                        progress(done, total)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing after what we have: it is complete
            return
        raise FileError(f"{address}: the server answers {error.code} {error.reason}") from None
    # An answer in pieces that breaks off is an HTTPException, and no OSError.
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise FileError(
            f"{address}: cannot be reached ({reason}). If this machine is offline, fetch it on "
            f"another and give the checkpoint's path as weights; if the connection broke, call "
            f"again and it goes on after {done} bytes."
        ) from None
    if total is not None and done < total:
        raise FileError(
            f"{address}: the connection broke after {done} of {total} bytes; call again to go on"
        )


def _opened(path: Path, mode: str) -> IO[bytes]:
    try:
        # Unbuffered, so that a full disk is met in `_write` and not when the file is closed.
        return open(path, mode, buffering=0)
    except OSError as error:
        raise FileError(f"{path}: cannot write here: {error.strerror}") from None


def _write(file: IO[bytes], block: bytes, path: Path) -> None:
    """Write it all, or say that it is the disk that fails and not the connection."""
    try:
        while block:
            block = block[file.write(block) :]
    except OSError as error:
        raise FileError(f"{path}: cannot write here: {error.strerror}") from None


def _unpack(archive: Path, published: Published, path: Path) -> None:
    try:
        with (
            zipfile.ZipFile(archive) as content,
            content.open(published.member) as packed,
            whole_file(path) as temporary,
        ):
            declared = content.getinfo(published.member).file_size
            if declared != published.size:  # zipfile unpacks no more than what is declared
                raise WeightsError(f"declares {declared} bytes, wanted {published.size}")
            with temporary.open("wb") as file:
                shutil.copyfileobj(packed, file)
            verify(temporary, published.sha256)
    except FileError:
        raise
    except WeightsError as error:
        archive.unlink()
        raise WeightsError(f"{published.address}, {published.member}: {error}") from None
    # Until its hash is known these are anyone's bytes, which zipfile meets with any exception.
    except Exception as error:
        archive.unlink()
        raise WeightsError(
            f"{published.address}: not the archive that was expected ({error}); it was removed"
        ) from None
