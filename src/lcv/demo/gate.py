"""What may be asked of the page's server: a gate before the web framework, which knows only the page.

The framework can do more than the page needs: fetch addresses, serve what lies in other folders, edit
itself. Rather than trust that all of it is switched off, the gate lets through what the page uses, and
answers everything else with a refusal.
"""

from __future__ import annotations

import asyncio
import json
import re
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lcv.demo.limits import MOST_BYTES, MOST_KEPT_BYTES, MOST_KEPT_FILES, MOST_UPLOAD

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost")
API = "/gradio_api/"
PAGE = re.compile(
    r"/|/(config|theme\.css|favicon\.ico|manifest\.json|robots\.txt)/?"
    r"|/(assets|static|svelte)/[\w@./-]+"
    r"|/gradio_api/(info|startup-events|heartbeat/\w+|app_id|theme\.css)/?"
    r"|/gradio_api/(queue/join|queue/data|upload|upload_progress|reset|cancel|run/predict)/?"
)
FILE = API + "file="
UPLOAD = API + "upload"
# Requests with words in them, which are read before they are passed on.
ASKING = tuple(API + name for name in ("queue/join", "run/predict", "reset", "cancel"))
MOST_WORDS = MOST_BYTES // 1000
HEADERS = [
    # The browser itself refuses to go elsewhere, whatever the page's scripts ask for.
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'none'; "
        b"form-action 'self'; base-uri 'self'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


class Gate:
    """An ASGI application around another. folder: the only one whose files are given out."""

    def __init__(self, app: Callable[..., Awaitable[None]], folder: str | Path) -> None:
        self.app = app
        self.folder = Path(folder).resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await receive()  # the request to connect, which alone can be answered
            await send({"type": "websocket.close", "code": 1008, "reason": "the page uses none"})
            return
        refusal = self.refusal(scope)
        if refusal is None and scope["method"] == "POST" and scope["path"].rstrip("/") in ASKING:
            content = await _content(receive)
            refusal = self.refusal_of(content)
            receive = _again(content, receive)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        uploading = scope["path"].rstrip("/") == UPLOAD
        if uploading:
            make_room(self.folder, int(_headers(scope)["content-length"]), 1)

        started = False

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except asyncio.CancelledError:  # the page ends while somebody listens
            return
        except Exception as error:
            # Whatever is asked of the framework, an answer is a line here and not a traceback.
            print(f"lcv demo: {scope['path']}: {type(error).__name__}: {error}", file=sys.stderr)
            if not started:
                await _refuse(send, 500, "the page could not answer this")
        finally:
            if uploading:  # how many files it brings is known only now
                make_room(self.folder, 0, 0)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused by its first lines, as (code, sentence); None where it is not."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "the page has no use for this kind of request"
        headers = _headers(scope)
        host = headers.get("host", "")
        if _name_of(host) not in HOSTS:
            return 403, "the page answers on 127.0.0.1 and localhost only"
        origin = headers.get("origin", "")
        if origin and urlsplit(origin).netloc != host:
            return 403, "another site may not ask this page for anything"
        path = scope["path"]
        if path.startswith(FILE):
            return None if self.holds(path.removeprefix(FILE)) else _outside()
        if not PAGE.fullmatch(path) or ".." in unquote(path):
            return 404, "the page has nothing of this name"
        if path.rstrip("/") == UPLOAD:
            length = headers.get("content-length", "")
            if scope["method"] != "POST" or not length.isdecimal():
                return 411, "an upload has to say how long it is"
            if len(length) > 15 or int(length) > MOST_UPLOAD:
                return 413, f"an upload of {length} bytes, wanted at most {MOST_UPLOAD}"
        return None

    def refusal_of(self, content: bytes | None) -> tuple[int, str] | None:
        """The same by what a request says: files it names must be ones that were uploaded."""
        if content is None:
            return 413, f"more than {MOST_WORDS} bytes, which no request of the page has"
        try:
            said = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            return 400, "this is no JSON"
        return None if all(self.holds(path) for path in _paths(said)) else _outside()

    def holds(self, path: object) -> bool:
        """Whether a path, as it was sent, is of a file in the folder."""
        if not isinstance(path, str) or "\0" in path or len(path) > 4096:
            return False
        # Encoded once more than it should be, a path may still lead out.
        for candidate in (path, unquote(path)):
            try:
                whole = Path(candidate)
                inside = whole.is_absolute() and whole.resolve().is_relative_to(self.folder)
            except (OSError, RuntimeError, ValueError):
                return False
            if not inside or ".." in whole.parts:
                return False
        return True


def make_room(folder: Path, length: int, more: int) -> None:
    """Remove the oldest files until `more` files, of `length` bytes together, fit into the limits."""
    files = []
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except OSError:  # gone meanwhile
            continue
        if stat.S_ISREG(status.st_mode):
            files.append((status.st_mtime_ns, status.st_size, path))
    files.sort()
    total = sum(size for _, size, _ in files)
    while files and (len(files) + more > MOST_KEPT_FILES or total + length > MOST_KEPT_BYTES):
        _, size, path = files.pop(0)
        path.unlink(missing_ok=True)
        total -= size


def _headers(scope: Scope) -> dict[str, str]:
    return {n.decode("latin-1").lower(): v.decode("latin-1") for n, v in scope["headers"]}


def _outside() -> tuple[int, str]:
    return 403, "the page gives out and takes its own files only"


def _name_of(host: str) -> str:
    return host.partition(":")[0].lower()


def _paths(said: Any, depth: int = 0) -> Iterator[object]:
    """Everything that the framework would take for a file's place."""
    if depth > 32:
        yield None
    elif isinstance(said, dict):
        if "path" in said:
            yield said["path"]
        for value in said.values():
            yield from _paths(value, depth + 1)
    elif isinstance(said, list):
        for value in said:
            yield from _paths(value, depth + 1)


async def _content(receive: Receive) -> bytes | None:
    """The whole of a request, None where it is too long."""
    content, more = bytearray(), True
    while more:
        message = await receive()
        content += message.get("body", b"")
        more = message.get("more_body", False) and message["type"] == "http.request"
        if len(content) > MOST_WORDS:
            return None
    return bytes(content)


def _again(content: bytes | None, receive: Receive) -> Receive:
    """A request's content once more, and then what its sender does, such as going away."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": content or b"", "more_body": False}

    return again


async def _refuse(send: Send, code: int, sentence: str) -> None:
    body = json.dumps({"detail": sentence}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": code, "headers": [*head, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
