"""A page driven in a real browser: started, asked, read, and what it asked the network for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from testing.extras import programs

# Debian's chromium for containers without a display; nothing of its own goes to the network.
BROWSER = ("chromium", "chromedriver")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1440,1400"),
)


class Server:
    """`lcv demo` in a process of its own, with a folder for temporary files."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        folder.mkdir()
        command = [sys.executable, "-m", "lcv.cli.main", "demo", "--no-browser", *options]
        environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
        self.errors = folder.with_suffix(".errors").open("w+")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
        )

    @cached_property
    def url(self) -> str:
        """Its address, once it says it: starting takes seconds in which a browser can start too."""
        assert self.process.stdout is not None
        url = self.process.stdout.readline().partition(" ")[0].rstrip("/")
        assert url.startswith("http://127.0.0.1:"), self.words()
        return url

    def words(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=20)


class Browser:
    """The page in chromium."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver

        chromium, driver = programs(*BROWSER)
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        self._asked: list[str] = []

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def read(self, selector: str) -> str:
        """The words in all such places; in one go, since the page may replace them meanwhile."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join(' ')"
        )
        return str(self.driver.execute_script(script, selector))

    def source(self, name: str) -> str:
        """The address of the picture shown in a place, empty where there is none."""
        script = "const e = document.querySelector(arguments[0]); return e ? e.src : ''"
        return str(self.driver.execute_script(script, f"[id='{name}'] img"))

    def picture(self, name: str) -> bytes:
        """The bytes of the picture shown in a place."""
        with urllib.request.urlopen(self.source(name), timeout=10) as answer:
            return answer.read()

    def slide(self, name: str, by: int) -> None:
        """Drag a slider's knob by so many pixels and let it go."""
        from selenium.webdriver import ActionChains

        knob = self.find(f"#{name} input[type=range]")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", knob)
        share = (float(knob.get_attribute("value")) - float(knob.get_attribute("min"))) / (
            float(knob.get_attribute("max")) - float(knob.get_attribute("min"))
        )
        start = round((share - 0.5) * (knob.size["width"] - 14))
        chain = ActionChains(self.driver, duration=10)
        chain.move_to_element_with_offset(knob, start, 0)
        chain.click_and_hold().move_by_offset(by, 0).release().perform()

    def click(self, selector: str) -> None:
        self.driver.execute_script("arguments[0].click()", self.find(selector))

    def upload(self, *paths: Path) -> None:
        chooser = self.find("#drop input[type=file]")
        chooser.send_keys("\n".join(map(str, paths)))

    def addresses(self) -> list[str]:
        """Everything that pages of the server have asked for so far, in order."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            # Chromium's own first tab speaks with chromium, not with us.
            if not message["params"].get("documentURL", "").startswith("chrome"):
                self._asked.append(message["params"]["request"]["url"])
        return self._asked


def until(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Wait for a condition to hold, and return what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")
