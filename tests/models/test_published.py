"""Fetching published checkpoints, against a server of our own on the loopback."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models import published
from lcv.models.embedded import EMBEDDED
from lcv.models.published import PUBLISHED, Published, fetch
from testing.shared import shared

CONTENT = {"models/one.pth": bytes(range(256)) * 400, "models/two.pth": b"two" * 1000}


class Server(ThreadingHTTPServer):
    """Serves one archive.

    ranges: honour Range;  stop_after: break off after so many bytes;  pieces: send it in chunks,
    whose total is not told;  pause: seconds before the body;  elsewhere: redirect to this address
    """

    def __init__(self, archive: bytes) -> None:
        self.archive, self.ranges, self.stop_after = archive, True, None
        self.pieces, self.pause = False, 0.0
        self.elsewhere: str | None = None
        self.asked: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"  # the first with answers in pieces
    close_connection = True

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.server.elsewhere is not None:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        start = int(wanted.split("=")[1].rstrip("-")) if wanted and self.server.ranges else 0
        body = self.server.archive[start:]
        if not body:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if self.server.pieces:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        time.sleep(self.server.pause)
        if self.server.pieces:
            self.wfile.write(b"%x\r\n" % len(body))
        self.wfile.write(body[: self.server.stop_after])
        if self.server.pieces and self.server.stop_after is None:
            self.wfile.write(b"\r\n0\r\n\r\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in CONTENT.items():
            archive.writestr(name, content)
    server = Server(buffer.getvalue())
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/models.zip"
    table = {
        name.split("/")[1].removesuffix(".pth"): Published(
            "raft-small",
            address,
            name,
            hashlib.sha256(content).hexdigest(),
            len(content),
            "nothing",
        )
        for name, content in CONTENT.items()
    }
    monkeypatch.setattr(published, "PUBLISHED", table)
    yield server
    server.shutdown()
    server.server_close()


def test_a_checkpoint_is_fetched_once_verified_and_its_siblings_with_it(server, tmp_path):
    seen = []
    path = fetch("one", tmp_path / "cache", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT["models/one.pth"]
    assert seen[-1][0] == seen[-1][1] == len(server.archive)
    assert sorted(p.name for p in path.parent.iterdir()) == ["one.pth", "two.pth"]
    fetch("one", tmp_path / "cache")
    fetch("two", tmp_path / "cache")
    assert len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False], ids=["server resumes", "server starts anew"])
def test_a_broken_download_goes_on_where_it_stopped(server, tmp_path, ranges):
    server.stop_after, server.ranges = 50_000, ranges
    with pytest.raises(FileError, match=r"broke after 50000 of \d+ bytes; call again to go on"):
        fetch("one", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["models.zip.part"]
    server.stop_after = None
    assert fetch("one", tmp_path).read_bytes() == CONTENT["models/one.pth"]
    assert server.asked == [None, "bytes=50000-"]
    assert not (tmp_path / "models.zip.part").exists()


def test_an_answer_in_pieces_that_breaks_off_is_a_broken_connection(server, tmp_path):
    server.pieces, server.stop_after = True, 50_000
    with pytest.raises(
        FileError, match=r"models\.zip: cannot be reached \(.*\)\. .* call again and it goes on"
    ):
        fetch("one", tmp_path)


FETCH = """
import sys
from pathlib import Path
from lcv.models import published
published.PUBLISHED = {
    "one": published.Published("raft-small", *sys.argv[1:4], int(sys.argv[5]), "nothing")
}
print(published.fetch("one", Path(sys.argv[4])))
"""


def test_of_two_processes_one_downloads_and_the_other_waits(server, tmp_path):
    server.pause = 0.5
    one = published.PUBLISHED["one"]
    command = [
        sys.executable,
        "-c",
        FETCH,
        one.address,
        one.member,
        one.sha256,
        str(tmp_path),
        str(one.size),
    ]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[0].decode().strip() for process in both] == [
        str(tmp_path / "one.pth")
    ] * 2
    assert server.asked == [None], "both downloaded, into one file"
    assert [p.name for p in tmp_path.iterdir()] == ["one.pth"]


def test_a_cache_that_cannot_be_made_or_written_is_a_sentence(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        FileError, match=r"lcv: this folder .* cannot be made .* set XDG_CACHE_HOME"
    ):
        fetch("one", tmp_path / "file" / "lcv")
    (tmp_path / "models.zip.part").mkdir()
    with pytest.raises(FileError, match=r"models\.zip\.part: cannot write here: Is a directory"):
        fetch("one", tmp_path)
    (tmp_path / "models.zip.part").rmdir()
    (tmp_path / "one.pth").mkdir()
    with pytest.raises(FileError, match=r"one\.pth: cannot be read: Is a directory"):
        fetch("one", tmp_path)


def test_a_full_disk_is_not_blamed_on_the_connection(server):
    with pytest.raises(FileError, match=r"/dev/full: cannot write here: No space left"):
        published.download(published.PUBLISHED["one"].address, Path("/dev/full"))


def test_a_download_that_was_complete_but_not_unpacked_is_used(server, tmp_path):
    (tmp_path / "models.zip.part").write_bytes(server.archive)
    assert fetch("two", tmp_path).read_bytes() == CONTENT["models/two.pth"]


def test_a_wrong_hash_is_refused_and_nothing_is_left(server, tmp_path, monkeypatch):
    wrong = dict(published.PUBLISHED)
    wrong["one"] = replace(wrong["one"], sha256="0" * 64)
    monkeypatch.setattr(published, "PUBLISHED", wrong)
    with pytest.raises(
        WeightsError, match=rf"models/one\.pth: .*sha256 is [0-9a-f]{{64}}, wanted {'0' * 64}"
    ):
        fetch("one", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_archive_is_refused_and_removed(server, tmp_path):
    server.archive = b"<html>the file has moved</html>"
    with pytest.raises(WeightsError, match="not the archive that was expected"):
        fetch("one", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cached_file_that_was_changed_is_refused(server, tmp_path):
    fetch("one", tmp_path).write_bytes(b"other")
    with pytest.raises(
        WeightsError, match=r"one\.pth: its sha256 is .* remove it and fetch it again"
    ):
        fetch("one", tmp_path)


def test_offline_is_a_sentence_that_says_what_to_do(server, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(
        FileError, match=r"cannot be reached .* If this machine is offline, fetch it on"
    ):
        fetch("one", tmp_path)


def test_an_answer_that_is_no_file_is_named(server, tmp_path):
    server.archive = b""
    with pytest.raises(FileError, match="the server answers 416"):
        fetch("one", tmp_path)


def test_unknown_names_list_the_known_ones(tmp_path):
    with pytest.raises(
        ArgumentError, match="unknown checkpoint 'raft-things'; published are raft-sin"
    ):
        fetch("raft-things", tmp_path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_table_s_hashes_are_those_of_the_published_files(name):
    file = Path(PUBLISHED[name].member).name
    published.verify(shared("weights", file), PUBLISHED[name].sha256)


def test_no_name_means_both_embedded_and_published_weights():
    assert not set(EMBEDDED) & set(PUBLISHED)


@pytest.mark.parametrize("pieces", [False, True], ids=["told beforehand", "found out"])
def test_more_bytes_than_the_archive_may_have_are_refused(server, tmp_path, pieces):
    server.pieces = pieces
    with pytest.raises(FileError, match=r"models\.zip: .*(wanted at most|more than the) 1000"):
        published.download(published.PUBLISHED["one"].address, tmp_path / "a", most=1000)
    assert list(tmp_path.iterdir()) == []


def test_a_member_of_another_size_is_not_unpacked(server, tmp_path, monkeypatch):
    one = published.PUBLISHED["one"]
    monkeypatch.setitem(published.PUBLISHED, "one", replace(one, size=one.size - 1))
    monkeypatch.setattr("shutil.copyfileobj", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(WeightsError, match="declares 102400 bytes, wanted 102399"):
        fetch("one", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["http", "ftp", "HTTP"])
def test_a_redirect_goes_to_https_or_nowhere(server, tmp_path, scheme):
    server.elsewhere = f"{scheme}://127.0.0.1:{server.server_port}/other.zip"
    with pytest.raises(FileError, match="sends us on to .*, wanted an https address"):
        fetch("one", tmp_path)
    assert len(server.asked) == 1
    request = urllib.request.Request("https://a.example/")
    followed = published._HttpsAlone().redirect_request(
        request, None, 302, "", {}, "https://b.example/"
    )
    assert followed is not None
    assert followed.full_url == "https://b.example/"


def test_the_table_has_the_sizes_of_the_files_we_know():
    for published_file in PUBLISHED.values():
        path = shared("weights", Path(published_file.member).name)
        assert path.stat().st_size == published_file.size


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_another_process_has_fetched_meanwhile_is_verified_too(
    server, tmp_path, monkeypatch, is_whole
):
    content = CONTENT["models/one.pth"] if is_whole else b"other"

    @contextmanager
    def waited_for(archive):
        assert archive == tmp_path / "models.zip.part"
        (tmp_path / "one.pth").write_bytes(content)
        yield

    monkeypatch.setattr(published, "only_one", waited_for)
    if is_whole:
        assert fetch("one", tmp_path) == tmp_path / "one.pth"
    else:
        with pytest.raises(WeightsError, match=r"one\.pth: its sha256 is .* remove it and fetch"):
            fetch("one", tmp_path)
    assert server.asked == []


def test_a_file_larger_than_any_archive_is_no_part_of_one(server, tmp_path):
    part = tmp_path / "models.zip.part"
    for more in (0, 1):
        part.write_bytes(bytes(len(server.archive) + more))
        address = published.PUBLISHED["one"].address
        published.download(address, part, most=len(server.archive))
    assert server.asked == [f"bytes={len(server.archive)}-", None]
    assert part.read_bytes() == server.archive


def test_an_archive_stays_where_its_content_cannot_be_written(server, tmp_path, monkeypatch):
    @contextmanager
    def full(path):
        raise FileError(f"{path.name}: the disk is full")
        yield

    monkeypatch.setattr(published, "whole_file", full)
    with pytest.raises(FileError, match=r"^one\.pth: the disk is full$"):
        fetch("one", tmp_path)
    assert (tmp_path / "models.zip.part").read_bytes() == server.archive
