"""Photograph the page for the documentation: `python docs/screenshots.py [FOLDER]`; needs chromium."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from demo.chromium import Browser, Server, until

PICTURES = Path(__file__).parent / "pictures"
WIDTH = 1100
NETWORKS = ("raft-small", "raft-small-vanilla", "raft-large")
SECONDS = 120.0


def photograph(browser: Browser, height: int, path: Path) -> None:
    """The top of the page, `height` pixels of the window high."""
    browser.driver.execute_script("window.scrollTo(0, 0)")
    browser.driver.set_window_size(1440, height)
    shot = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    small = shot.resize((WIDTH, round(shot.height * WIDTH / shot.width)), Image.Resampling.LANCZOS)
    small.save(path, quality=84, optimize=True)
    print(path)


def wait_for_all(browser: Browser, before: dict[str, str]) -> dict[str, str]:
    """Wait until every network has drawn another picture; returns their addresses."""
    places = [f"{kind}-{name}" for kind in ("flow", "arrows") for name in NETWORKS]
    for place in places:
        until(lambda p=place: browser.source(p) not in ("", before.get(p)), place, SECONDS)
    return {place: browser.source(place) for place in places}


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        server = Server(Path(home) / "tmp")
        browser = Browser(Path(home) / "profile")
        try:
            browser.driver.get(server.url)
            drawn = wait_for_all(browser, {})
            photograph(browser, 2330, folder / "demo-flow.jpg")
            for slider, by in (("gamma", -25), ("noise", 40), ("patch", 90)):
                browser.slide(slider, by)
                drawn = wait_for_all(browser, drawn)
            photograph(browser, 1400, folder / "demo-stress.jpg")
            tabs = browser.driver.find_elements("css selector", "button[role=tab]")
            next(tab for tab in tabs if "learned W" in tab.text).click()
            until(lambda: browser.source("features"), "the features", SECONDS)
            photograph(browser, 1800, folder / "demo-learned-w.jpg")
        finally:
            browser.driver.quit()
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
