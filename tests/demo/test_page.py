"""The page in a real browser: upload, run, a slider, a wrong file, a file that is not its own."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from demo.chromium import BROWSER, Browser, Server, until
from lcv.data.formats.image import write_image
from testing.extras import needs, programs
from testing.footage import moving, save_film

needs("gradio")

SIZE = (136, 168)


def test_the_page_in_a_real_browser(tmp_path):
    """Its whole life, in order: workers share no server, and one start of it all is enough."""
    programs(*BROWSER)
    # The real command, with the smallest network and few iterations.
    server = Server(tmp_path / "tmp", "--models", "raft-small", "--iters", "2")
    try:
        browser = Browser(tmp_path / "profile")
        try:
            browser.driver.get(server.url)
            frames = [tmp_path / "first.png", tmp_path / "second.png"]
            for path, frame in zip(frames, moving(2, SIZE), strict=True):
                write_image(path, frame)
            opens_with_an_example_that_is_computed_and_measured(browser)
            takes_frames_runs_and_follows_a_slider(server, browser, frames)
            takes_a_film_and_goes_through_its_frames(browser, tmp_path)
            says_in_a_sentence_that_a_text_is_no_picture(browser, frames, tmp_path)
            forgets_old_results_when_a_run_fails(browser, frames, tmp_path)
            shows_the_learned_W(browser)
            gives_out_its_own_pictures(server)
            refuses_files_outside_its_folder(server, tmp_path)
            refuses_other_names_and_other_sites(server)
            takes_no_address_and_no_other_file_for_an_upload(server)
            has_asked_nothing_of_any_other_machine(server, browser)
            has_no_websocket(server)
        finally:
            browser.driver.quit()
        leaves_nothing_behind(server)
    finally:
        server.stop()


def changed(browser: Browser, name: str, before: str) -> str:
    return until(
        lambda: browser.source(name) not in ("", before) and browser.source(name),
        f"another picture in {name}: {browser.read('.toast-body')}",
    )


def opens_with_an_example_that_is_computed_and_measured(browser):
    until(lambda: "EPE" in browser.read("#numbers-raft-small"), "the example's numbers")
    assert "px" in browser.read("#numbers-raft-small")
    assert browser.source("error-raft-small")
    assert browser.source("truth")
    # Those that were not asked for are not there.
    assert not browser.source("flow-raft-large")


def takes_frames_runs_and_follows_a_slider(server, browser, frames):
    example = browser.source("flow-raft-small")
    browser.upload(*frames)
    until(lambda: "Press Run" in browser.read("#status"), "the frames' names")
    assert "first.png and second.png" in browser.read("#status")
    assert browser.picture("first") != browser.picture("second")
    browser.click("#run")
    flow = changed(browser, "flow-raft-small", example)
    until(lambda: browser.source("arrows-raft-small"), "the overlay")
    # Nobody knows the truth of uploaded frames.
    assert "EPE" not in browser.read("#numbers-raft-small")
    assert " s" in browser.read("#numbers-raft-small")
    frame, picture = browser.picture("first"), browser.picture("flow-raft-small")
    browser.slide("gamma", -40)
    changed(browser, "flow-raft-small", flow)
    assert browser.picture("first") != frame
    assert browser.picture("flow-raft-small") != picture
    # What was uploaded is not kept.
    assert not [*server.folder.rglob("first.png"), *server.folder.rglob("second.png")]


def takes_a_film_and_goes_through_its_frames(browser, tmp_path):
    film = save_film(tmp_path / "film.mp4", 4, SIZE)
    browser.upload(film)
    until(lambda: "film.mp4" in browser.read("#status"), "the film's name")
    until(lambda: browser.read("#position"), "its slider")
    before = browser.source("first")
    browser.slide("position", 80)
    changed(browser, "first", before)


def says_in_a_sentence_that_a_text_is_no_picture(browser, frames, tmp_path):
    text = tmp_path / "letter.png"
    text.write_text("Dear page, I am not a picture.", encoding="utf-8")
    browser.upload(text, frames[1])
    words = until(lambda: browser.read(".toast-body"), "a sentence")
    assert "letter.png: not an image that can be read (30 bytes)" in words
    assert "Traceback" not in words
    assert str(tmp_path.parent) not in words
    # The next files are taken as if nothing had happened.
    until(lambda: "Drop" in browser.read("#drop"), "an empty place for files")
    browser.upload(*frames)
    until(lambda: "first.png and second.png" in browser.read("#status"), "the next frames")


def forgets_old_results_when_a_run_fails(browser, frames, tmp_path):
    browser.click("#run")
    until(lambda: browser.source("flow-raft-small"), "results of the frames before")
    small = [tmp_path / "small1.png", tmp_path / "small2.png"]
    for path, frame in zip(small, moving(2, (30, 40)), strict=True):
        write_image(path, frame)
    browser.upload(*small)
    until(lambda: "small1.png and small2.png" in browser.read("#status"), "the small frames")
    browser.click("#run")

    def sentences() -> str:
        found = browser.driver.find_elements("css selector", ".toast-body")
        return " ".join(each.text for each in found)

    until(lambda: "at least" in sentences(), "a sentence about their size")
    assert not browser.source("flow-raft-small")
    assert "…" in browser.read("#numbers-raft-small")
    browser.upload(*frames)
    until(lambda: "first.png and second.png" in browser.read("#status"), "the frames again")


def shows_the_learned_W(browser):
    tab = next(
        each
        for each in browser.driver.find_elements("css selector", "button[role=tab]")
        if "learned W" in each.text
    )
    tab.click()
    until(lambda: browser.source("features"), "the features along W's directions")
    assert "condition" in browser.read("#table")
    assert browser.source("spectrum") != browser.source("angles")


def ask(server: Server, path: str, **headers: str) -> tuple[int, bytes]:
    """A path exactly as written: libraries would tidy `..` away."""
    host = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def refuses_files_outside_its_folder(server, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0", encoding="utf-8")
    inside = server.folder.resolve()
    own = next(inside.glob("lcv-demo-*"))
    up = "/".join([".."] * len(own.parts))
    paths = [
        "/gradio_api/file=/etc/passwd",
        f"/gradio_api/file={secret}",
        f"/gradio_api/file={own}/{up}/etc/passwd",
        f"/gradio_api/file={own}/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        f"/gradio_api/file={own}/%252e%252e/%252e%252e/etc/passwd",
        f"/gradio_api/file={own}-not/passwd",
        "/gradio_api/file=pyproject.toml",
        "/gradio_api/file=../../etc/passwd",
        "/gradio_api/file=file:///etc/passwd",
        "/gradio_api/file=http://127.0.0.1:1/",
        "/gradio_api/proxy=http://127.0.0.1:1/",
        "/gradio_api/file/etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/gradio_api/vibe-code/",
        "/monitoring",
    ]
    for path in paths:
        status, content = ask(server, path)
        assert status in (403, 404), path
        assert b"root:" not in content, path


def gives_out_its_own_pictures(server):
    picture = next(path for path in server.folder.resolve().rglob("*.png"))
    status, content = ask(server, f"/gradio_api/file={picture}")
    assert (status, content) == (200, picture.read_bytes())


def refuses_other_names_and_other_sites(server):
    assert ask(server, "/", Host="127.0.0.1")[0] == 200
    assert ask(server, "/", Host="evil.example")[0] == 403
    assert ask(server, "/", Origin="http://evil.example")[0] == 403


def takes_no_address_and_no_other_file_for_an_upload(server):
    for place in ("http://127.0.0.1:1/a.png", "/etc/passwd"):
        file = {"path": place, "meta": {"_type": "gradio.FileData"}}
        body = {"data": [[file]], "fn_index": 4, "session_hash": "abc"}
        request = urllib.request.Request(
            f"{server.url}/gradio_api/queue/join",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        assert refused.value.code == 403


def has_asked_nothing_of_any_other_machine(server, browser):
    asked = browser.addresses()
    outside = [each for each in asked if not each.startswith((f"{server.url}/", "data:", "blob:"))]
    assert len(asked) > 20
    assert outside == []


def has_no_websocket(server):
    shaking = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert ask(server, "/gradio_api/queue/join", **shaking, **key)[0] == 403


def leaves_nothing_behind(server):
    assert list(server.folder.glob("lcv-demo-*"))
    host = server.url.removeprefix("http://")
    listening = http.client.HTTPConnection(host, timeout=10)  # an open page, told of nothing yet
    listening.request("GET", "/gradio_api/heartbeat/abc")
    assert listening.getresponse().status == 200
    lost = http.client.HTTPConnection(host, timeout=10)  # one that the framework fails on
    lost.request("GET", "/gradio_api/queue/data?session_hash=none")
    lost.getresponse()
    assert server.stop() == 0
    listening.close()
    assert [path for path in server.folder.rglob("*") if path.is_file()] == []
    assert not list(Path(server.folder).glob("lcv-demo-*"))
    assert "Traceback" not in server.words()
