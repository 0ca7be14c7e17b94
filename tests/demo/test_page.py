"""The page in a real browser, at three widths: every control, every download, every refusal."""

from __future__ import annotations

import http.client
import io
import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from PIL import Image

from demo.accessible import low_contrast, moved, resize, watch, without_focus
from demo.chromium import BROWSER, Browser, Server, until
from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image, write_image
from lcv.data.formats.video import read_video
from lcv.visual.overlay import arrow_stretch
from testing.extras import needs, programs
from testing.footage import moving, save_film, save_weights

needs("gradio")

SIZE = (136, 168)
OWN = "mine.safetensors"
WIDTHS = (1280, 768, 390)


def test_the_page_in_a_real_browser(tmp_path):
    """Its whole life, in order: workers share no server, and one start of it all is enough."""
    programs(*BROWSER)
    # The real command, with the smallest network, weights of one's own, and few iterations.
    models = f"raft-small,{save_weights(tmp_path / OWN)}"
    server = Server(tmp_path / "tmp", "--models", models, "--iters", "2")
    try:
        browser = Browser(tmp_path / "profile")
        try:
            resize(browser, WIDTHS[0])
            browser.driver.get(server.url)
            frames = [tmp_path / "one.png", tmp_path / "two.png"]
            for path, frame in zip(frames, moving(2, SIZE), strict=True):
                write_image(path, frame)
            opens_with_an_example_that_is_computed_and_measured(browser)
            can_be_read_at_every_width(browser)
            shows_every_focus(browser)
            gives_its_results_as_files(browser, tmp_path)
            compares_two_pictures_with_a_slider(browser)
            takes_frames_runs_and_follows_a_slider(server, browser, frames)
            computes_larger_frames_on_request(browser, tmp_path)
            takes_a_video_and_goes_through_its_frames(browser, tmp_path)
            makes_a_clip_of_the_whole_video(browser, tmp_path)
            says_in_a_sentence_that_a_text_is_no_picture(browser, frames, tmp_path)
            forgets_old_results_when_a_run_fails(browser, frames, tmp_path)
            shows_the_learned_W(browser)
            gives_out_its_own_pictures(server)
            refuses_files_outside_its_folder(server, tmp_path)
            refuses_other_names_and_other_sites(server)
            takes_no_address_and_no_other_file_for_an_upload(server)
            has_asked_nothing_of_any_other_machine(server, browser)
            has_no_websocket(server)
            sentences_have_gone_by_themselves(browser)
            can_be_read_in_the_dark_at_390_pixels(server, browser)
            deletes_what_it_showed_when_it_is_closed(server, browser)
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


def is_laid_out(browser) -> bool:
    """Whether every block has been where it is for a third of a second."""
    script = (
        "return [...document.querySelectorAll('.block')].map(e => e.getBoundingClientRect().top)"
    )
    before = browser.driver.execute_script(script)
    time.sleep(0.33)
    return before == browser.driver.execute_script(script)


def nothing_moves_when_results_come(browser):
    until(lambda: browser.read("#layout"), "the page")
    until(lambda: is_laid_out(browser), "a page that is laid out")  # on a busy machine, seconds
    watch(browser)
    until(lambda: "EPE" in browser.read(f"[id='numbers-{OWN}']"), "the example's numbers")
    assert moved(browser) == []


def opens_with_an_example_that_is_computed_and_measured(browser):
    nothing_moves_when_results_come(browser)
    assert "px" in browser.read("#numbers-raft-small")
    assert browser.source("error-raft-small")
    assert browser.source("truth")
    # Those that were not asked for are not there.
    assert not browser.source("flow-raft-large")
    assert "two images or one video" in browser.read("#drop")


def can_be_read_at_every_width(browser):
    def top(selector: str) -> float:
        box = "return document.querySelector(arguments[0]).getBoundingClientRect()"
        return browser.driver.execute_script(f"{box}.top", selector)

    for width in WIDTHS:
        resize(browser, width)
        wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, "nothing has to be scrolled sideways"
        assert low_contrast(browser) == [], width
        texts = browser.driver.execute_script("return [...document.images].map(i => i.alt)")
        assert "frame 1" in texts
        assert all(texts), "every picture has a text"
        captions = browser.driver.execute_script(
            "return [...document.querySelectorAll('.network figure')].map(f => f.innerText)"
        )
        assert len(captions) == 8
        assert all(each.startswith(("raft-small: ", f"{OWN}: ")) for each in captions)
    assert top(".compare") < top("#settings") < top(".network"), "settings after the first result"


def shows_every_focus(browser):
    result = browser.source("flow-raft-small")
    for width in reversed(WIDTHS):
        resize(browser, width)
        count, unseen = without_focus(browser, tabs=70)
        assert count > 45
        assert unseen == []
    assert browser.source("flow-raft-small") == result, "nothing was changed, so nothing is done"


def fetch(browser, selector: str, path: Path) -> Path:
    """What a link on the page downloads."""
    url = browser.find(selector).get_attribute("href")
    with urllib.request.urlopen(url, timeout=10) as answer:
        path.write_bytes(answer.read())
    return path


def gives_its_results_as_files(browser, tmp_path):
    links = "[id='numbers-raft-small'] + p a"
    assert browser.find(links).get_attribute("download") == "raft-small.flo"
    flow, _ = read_flow(fetch(browser, links, tmp_path / "a.flo"))
    picture = read_image(fetch(browser, "#flow-raft-small figcaption a", tmp_path / "a.png"))
    assert (*flow.shape[:2], 3) == picture.shape == (240, 320, 3)
    stretch = arrow_stretch(flow, spacing=240 // 12)
    assert stretch > 1, "or there would be nothing to say"
    caption = browser.read("#arrows-raft-small figcaption")
    assert caption.startswith(f"raft-small: arrows ×{stretch:g} ")


def compares_two_pictures_with_a_slider(browser):
    def split() -> str:
        style = "return getComputedStyle(document.querySelector('.compare .right')).clipPath"
        return browser.driver.execute_script(style)

    until(
        lambda: browser.find(".compare .right").get_attribute("alt") == "raft-small: flow", "flow"
    )
    assert split() == "inset(0px 0px 0px 50%)"
    browser.find(".compare input").send_keys("\ue014")  # the arrow to the right
    assert split() == "inset(0px 0px 0px 51%)"
    chooser = browser.find(".compare label:nth-of-type(2) select")
    chooser.send_keys(f"{OWN}: error")
    assert browser.find(".compare .right").get_attribute("alt") == f"{OWN}: error"
    assert browser.find(".compare .right").get_attribute("src") == browser.source(f"error-{OWN}")


def takes_frames_runs_and_follows_a_slider(server, browser, frames):
    example = browser.source("flow-raft-small")
    browser.upload(*frames)
    until(lambda: "Press Run" in browser.read("#status"), "the frames' names")
    assert "one.png and two.png" in browser.read("#status")
    assert browser.picture("first") != browser.picture("second")
    seen = "window.seen = []; new MutationObserver(() => window.seen.push(document.querySelector("
    seen += "'#status .now').innerText)).observe(document.querySelector('#status'), "
    browser.driver.execute_script(seen + "{subtree: true, childList: true, characterData: true})")
    browser.click("#run")
    flow = changed(browser, "flow-raft-small", example)
    until(lambda: "Done" in browser.read("#status"), "the end of the run")
    progress = browser.driver.execute_script("return window.seen")
    for words in ("1 of 2: raft-small is at work …", f"2 of 2: {OWN} is at work …", "Done."):
        assert words in progress
    # Nobody knows the truth of uploaded frames.
    assert "EPE" not in browser.read("#numbers-raft-small")
    assert " s" in browser.read("#numbers-raft-small")
    frame, picture = browser.picture("first"), browser.picture("flow-raft-small")
    browser.slide("gamma", -40)
    changed(browser, "flow-raft-small", flow)
    assert browser.picture("first") != frame
    assert browser.picture("flow-raft-small") != picture
    # What was uploaded is not kept.
    assert not [*server.folder.rglob("one.png"), *server.folder.rglob("two.png")]


def computes_larger_frames_on_request(browser, tmp_path):
    wide = [tmp_path / "wide1.png", tmp_path / "wide2.png"]
    for path, frame in zip(wide, moving(2, (88, 704)), strict=True):
        write_image(path, frame)
    browser.upload(*wide)
    until(lambda: "wide1.png and wide2.png" in browser.read("#status"), "the wide frames")
    assert "Reduced from 704×88 to 640×80 pixels" in browser.read("#status")
    browser.click("#side input[value='1024']")
    until(lambda: browser.source(f"arrows-{OWN}"), "the last network's results")
    assert "Reduced" not in browser.read("#status")
    for name in ("first", "flow-raft-small", f"arrows-{OWN}"):
        assert Image.open(io.BytesIO(browser.picture(name))).size == (704, 88), name


def takes_a_video_and_goes_through_its_frames(browser, tmp_path):
    video = save_film(tmp_path / "video.mp4", 4, SIZE)
    browser.upload(video)
    until(lambda: "video.mp4" in browser.read("#status"), "the video's name")
    until(lambda: browser.read("#position"), "its slider")
    before = browser.source("first")
    browser.slide("position", 80)
    changed(browser, "first", before)


def makes_a_clip_of_the_whole_video(browser, tmp_path):
    until(lambda: "Done" in browser.read("#status"), "the end of the run")
    browser.click("#clip")
    until(lambda: f"{OWN}: whole video" in browser.read("#clips"), "the clips")
    assert "3 of 3 pairs" in browser.read("#status")
    clip = fetch(browser, "#clips figcaption a", tmp_path / "clip.mp4")
    assert len(list(read_video(clip))) == 3
    plays = "return document.querySelector('#clips video').readyState"
    until(lambda: browser.driver.execute_script(plays), "the player knows the clip's size")


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
    until(lambda: "one.png and two.png" in browser.read("#status"), "the next frames")


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
    until(lambda: "one.png and two.png" in browser.read("#status"), "the frames again")


def shows_the_learned_W(browser):
    tab = next(
        each
        for each in browser.driver.find_elements("css selector", "button[role=tab]")
        if "learned W" in each.text
    )
    tab.click()
    until(lambda: browser.source("features"), "the features along W's directions")
    assert "Condition number" in browser.read("#table")
    assert OWN in browser.read("#of")
    resize(browser, WIDTHS[-1])
    assert low_contrast(browser, words=20) == []
    # Charts are shown in the size that they are drawn in, or their letters would be too small.
    sizes = "return [...document.querySelectorAll('.charts img')].map(i => [i.clientWidth, i.naturalWidth])"

    def charts() -> list[list[int]]:
        return browser.driver.execute_script(sizes)

    until(lambda: len(charts()) == 3 and all(min(size) > 0 for size in charts()), "three charts")
    assert min(shown / drawn for shown, drawn in charts()) > 0.9


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


def sentences_have_gone_by_themselves(browser):
    def boxes() -> list:
        return browser.driver.find_elements("css selector", ".toast-body")

    until(lambda: not boxes(), "an end of what was said about letter.png and the small frames")


def can_be_read_in_the_dark_at_390_pixels(server, browser):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    browser.driver.get(server.url)
    nothing_moves_when_results_come(browser)
    assert browser.driver.execute_script("return document.body.classList.contains('dark')")
    assert low_contrast(browser) == []


def deletes_what_it_showed_when_it_is_closed(server, browser):
    browser.driver.get("about:blank")
    until(lambda: not list(server.folder.rglob("shown-*")), "an empty folder")


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
