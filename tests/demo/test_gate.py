"""The gate before the page's server: what is let through, and what is not."""

from __future__ import annotations

import asyncio
import json
import os
from types import SimpleNamespace

import pytest

from lcv.demo import gate, limits, serve
from lcv.demo.gate import MOST_WORDS, Gate
from lcv.demo.limits import MOST_UPLOAD
from lcv.errors import ArgumentError, BackendError


def answer(gate_folder, path="/", method="GET", body=b"", reached=None, **headers):
    """The status of a request; what reaches the page's own program is put into `reached`."""

    async def page(scope, receive, send):
        message = await receive()
        if reached is not None:
            reached.append(message.get("body", b""))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})

    sent = []

    async def send(message):
        sent.append(message)

    parts = [body[:10], body[10:]]

    async def receive():
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    headers = {"host": "127.0.0.1:7860", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(Gate(page, gate_folder)(scope, receive, send))
    assert any(name == b"content-security-policy" for name, _ in sent[0]["headers"])
    return sent[0]["status"]


@pytest.mark.parametrize(
    "path",
    ["/", "/config", "/theme.css", "/assets/index-a_b.js", "/gradio_api/heartbeat/a1b2"],
)
def test_what_the_page_needs_is_let_through(tmp_path, path):
    assert answer(tmp_path, path) == 200


def test_files_of_the_folder_are_given_and_no_others(tmp_path):
    folder = tmp_path / "own"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "b.png").write_bytes(b"")
    (tmp_path / "own-too").mkdir()
    (folder / "link").symlink_to(tmp_path)
    assert answer(folder, f"/gradio_api/file={folder}/a/b.png") == 200
    for path in (
        f"{tmp_path}/own-too/b.png",
        f"{folder}/../secret",
        f"{folder}/a/../../own/a/b.png",
        f"{folder}/%2e%2e/secret",
        f"{folder}/link/secret",
        "b.png",
        f"{folder}/a\0.png",
        "http://example.org/a.png",
        "",
    ):
        assert answer(folder, f"/gradio_api/file={path}") == 403, path


@pytest.mark.parametrize(
    "path",
    [
        *("/gradio_api/proxy=http://example.org/", "/gradio_api/vibe-edit", "/monitoring"),
        *("/gradio_api/run/other", "/gradio_api/call/v2/x", "/assets/../secret", "/docs"),
    ],
)
def test_what_the_page_does_not_need_is_not_there(tmp_path, path):
    assert answer(tmp_path, path) == 404


def test_other_hosts_origins_and_kinds_are_refused(tmp_path):
    assert answer(tmp_path, host="localhost:7860") == 200
    assert answer(tmp_path, host="evil.example:7860") == 403
    assert answer(tmp_path, host="") == 403
    assert answer(tmp_path, origin="http://127.0.0.1:7860") == 200
    assert answer(tmp_path, origin="http://127.0.0.1:80") == 403
    assert answer(tmp_path, origin="null") == 403
    assert answer(tmp_path, method="DELETE") == 405


def test_a_request_names_uploaded_files_only_and_arrives_whole(tmp_path):
    def join(data):
        reached = []
        body = data if isinstance(data, bytes) else json.dumps({"data": data}).encode()
        status = answer(tmp_path, "/gradio_api/queue/join", "POST", body, reached)
        assert reached == ([body] if status == 200 else [])
        return status

    assert join(["a", 1, None]) == 200
    assert join([[{"path": f"{tmp_path}/a/b.png"}]]) == 200
    assert join([[{"path": "/etc/passwd"}]]) == 403
    assert join([{"video": {"path": "https://example.org/a.mp4"}}]) == 403
    assert join([{"path": 7}]) == 403
    assert join(b"not JSON") == 400
    assert join(["x" * MOST_WORDS]) == 413
    deep = None
    for _ in range(100):
        deep = [deep]
    assert join(deep) == 403


def upload(folder, length, method="POST"):
    said = {} if length is None else {"content-length": str(length)}
    return answer(folder, "/gradio_api/upload", method, b"", **said)


def test_an_upload_says_its_length_and_is_two_files_long_at_most(tmp_path):
    assert upload(tmp_path, MOST_UPLOAD) == 200
    assert upload(tmp_path, MOST_UPLOAD + 1) == 413
    assert upload(tmp_path, "9" * 5000) == 413
    for length in (None, "", "-1", "many"):
        assert upload(tmp_path, length) == 411
    assert upload(tmp_path, 10, "GET") == 411


def test_the_oldest_files_make_room_for_an_upload(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "MOST_KEPT_FILES", 4)
    monkeypatch.setattr(gate, "MOST_KEPT_BYTES", 1000)
    for age in range(6):
        (tmp_path / f"{age}").mkdir()
        (tmp_path / f"{age}" / "a.png").write_bytes(bytes(100))
        os.utime(tmp_path / f"{age}" / "a.png", (1000 - age, 1000 - age))

    def kept():
        return sorted(path.parent.name for path in tmp_path.rglob("a.png"))

    upload(tmp_path, 10)
    assert kept() == ["0", "1", "2"], "with the upload there are four"
    upload(tmp_path, 850)
    assert kept() == ["0"], "with the upload there are 950 bytes"


@pytest.mark.parametrize("error", [None, ValueError("too many")])
def test_an_upload_of_many_small_files_leaves_no_more_than_may_be_kept(
    tmp_path, monkeypatch, error
):
    monkeypatch.setattr(gate, "MOST_KEPT_FILES", 4)
    (tmp_path / "old.png").write_bytes(b"")
    os.utime(tmp_path / "old.png", (1000, 1000))

    async def page(scope, receive, send):
        for age in range(10):
            (tmp_path / f"{age}.png").write_bytes(b"")
            os.utime(tmp_path / f"{age}.png", (3000 - age, 3000 - age))
        if error:
            raise error

    async def send(message):
        pass

    headers = [(b"host", b"localhost"), (b"content-length", b"10")]
    scope = {"type": "http", "method": "POST", "path": "/gradio_api/upload", "headers": headers}
    asyncio.run(Gate(page, tmp_path)(scope, None, send))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}.png" for age in range(4)]


def test_a_file_that_goes_meanwhile_takes_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "MOST_KEPT_BYTES", 1000)
    (tmp_path / "a.png").write_bytes(bytes(100))
    found = [tmp_path / "gone.png", tmp_path / "a.png"]
    folder = SimpleNamespace(rglob=lambda pattern: found)
    gate.make_room(folder, 900, 1)
    assert (tmp_path / "a.png").exists()
    gate.make_room(folder, 901, 1)
    assert not (tmp_path / "a.png").exists()


def test_a_name_that_no_file_can_have_is_not_held(tmp_path):
    held = Gate(None, tmp_path).holds
    assert held(f"{tmp_path}/a")
    assert not held(f"{tmp_path}/\ud800"), "half a character"


def test_the_framework_hears_when_the_server_starts_and_ends(tmp_path):
    heard = []

    async def page(*words):
        heard.append(words)

    scope = {"type": "lifespan"}
    asyncio.run(Gate(page, tmp_path)(scope, "receive", "send"))
    assert heard == [(scope, "receive", "send")]


def test_a_websocket_is_closed_and_no_error_is_raised(tmp_path):
    sent, waiting = [], [{"type": "websocket.connect"}]

    async def send(message):
        sent.append(message["type"])

    async def receive():
        return waiting.pop(0)

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"127.0.0.1")]}
    asyncio.run(Gate(None, tmp_path)(scope, receive, send))
    assert sent == ["websocket.close"]


def test_who_asked_and_went_away_is_noticed(tmp_path):
    """Else the page would wait for ever, also when it is told to end."""
    heard = []

    async def page(scope, receive, send):
        heard.extend([(await receive())["type"], (await receive())["type"]])

    waiting = [{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}]

    async def receive():
        return waiting.pop(0)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/gradio_api/queue/join",
        "headers": [(b"host", b"127.0.0.1")],
    }
    asyncio.run(Gate(page, tmp_path)(scope, receive, None))
    assert heard == ["http.request", "http.disconnect"]


@pytest.mark.parametrize(
    ("error", "begun", "sent"),
    [
        (ValueError("odd\x1b"), False, ["http.response.start", "http.response.body"]),
        (ValueError("odd"), True, ["http.response.start"]),
        (asyncio.CancelledError(), True, ["http.response.start"]),
    ],
)
def test_an_error_in_the_framework_is_a_line_and_not_a_traceback(
    tmp_path, capsys, error, begun, sent
):
    found = []

    async def page(scope, receive, send):
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    async def send(message):
        found.append(message["type"])

    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "GET", "path": "/config", "headers": headers}
    asyncio.run(Gate(page, tmp_path)(scope, None, send))
    assert found == sent
    assert len(capsys.readouterr().err.splitlines()) == isinstance(error, ValueError)


def test_limits_are_those_of_the_documentation():
    """The table in docs/demo.md."""
    files, kept = (
        (limits.MOST_BYTES, limits.MOST_UPLOAD),
        (limits.MOST_KEPT_FILES, limits.KEPT_SECONDS),
    )
    assert limits.SIDES == (640, 1024, 1920)
    assert (limits.MOST_PIXELS, *files) == (24_000_000, 64 * 2**20, 128 * 2**20 + 2**16)
    assert (*kept, limits.MOST_KEPT_BYTES) == (500, 3600, 512 * 2**20)
    assert (limits.LONGEST_VIDEO, limits.MOST_FRAMES, limits.DECODE_SECONDS) == (60, 60, 30)
    assert (limits.MOST_WAITING, limits.MOST_SESSIONS) == (8, 4)


def test_the_first_free_port_is_taken_and_a_number_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(serve, "_taken", {7860: "in use"}.get)
    assert serve.free_port() == 7861
    assert serve.check_port(7861) == 7861
    with pytest.raises(ArgumentError, match="--port 7860 cannot be used: in use"):
        serve.check_port(7860)
    for port in (0, 65536):
        with pytest.raises(ArgumentError, match=f"--port is {port}, wanted a number from 1 to"):
            serve.check_port(port)
    monkeypatch.setattr(serve, "_taken", lambda port: "in use")
    with pytest.raises(BackendError, match="the ports 7860 to 7959 are all in use"):
        serve.free_port()
