"""`lcv demo` on the command line: this machine only, and a sentence for everything else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from lcv.cli import main as cli


def said(capsys, *options):
    assert cli.main(["demo", "--no-browser", *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_other_hosts_are_refused(capsys, host):
    words = said(capsys, "--host", host)
    assert f"--host is {host!r}, but the page is for this machine only: wanted 127.0.0.1" in words
    assert "ssh -L" in words


def test_ports(capsys):
    assert "--port is 0, wanted a number from 1 to 65535" in said(capsys, "--port", "0")
    assert "--port is 'http', wanted a whole number; `lcv demo --help` lists" in said(
        capsys, "--port", "http"
    )
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"--port {port} cannot be used: " in said(capsys, "--port", str(port))


def test_without_gradio_it_says_how_to_install_it(capsys, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert "pip install 'lcv-flow[demo]'" in said(capsys)


def test_help_takes_less_than_half_a_second():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-m", "lcv.cli.main", "demo", "--help"]
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_what_is_asked_for_reaches_the_page(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lcv.demo.serve.serve", lambda *words, **options: asked.append((words, options))
    )
    assert cli.main(["demo"]) == 0
    own = ["--models", "raft-small,raft-large", "--iters", "3", "--port", "8000", "--no-browser"]
    assert cli.main(["demo", *own, "--host", "localhost"]) == 0
    assert asked == [
        (("127.0.0.1", None), {"browser": True, "models": None, "iters": 12}),
        (
            ("localhost", 8000),
            {"browser": False, "models": ("raft-small", "raft-large"), "iters": 3},
        ),
    ]
