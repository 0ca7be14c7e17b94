"""How the page is served: to this machine only, from a folder of its own, until it is told to end."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from types import SimpleNamespace

import pytest

from lcv.demo import serve as module
from lcv.errors import ArgumentError, BackendError
from testing.extras import needs


def test_a_port_that_somebody_listens_on_is_refused():
    with socket.socket() as taken:
        taken.bind((module.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=f"--port {port} cannot be used: .* take another"):
            module.check_port(port)
    assert module.check_port(port) == port


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_does_not_exist_is_refused(port, monkeypatch):
    monkeypatch.setattr(module, "_taken", lambda port: None)
    with pytest.raises(ArgumentError, match=f"--port is {port}, wanted a number from 1 to 65535"):
        module.check_port(port)
    assert [module.check_port(each) for each in (1, 65535)] == [1, 65535]


def test_ports_are_tried_in_order(monkeypatch):
    free = {7861, 7863}
    monkeypatch.setattr(module, "_taken", lambda port: None if port in free else "in use")
    assert module.free_port() == 7861
    free.clear()
    first, last = module.PORTS[0], module.PORTS[-1]
    with pytest.raises(BackendError, match=f"the ports {first} to {last} are all in use"):
        module.free_port()
    assert first == 7860


def test_the_folder_is_ours_alone_and_goes():
    with module._own_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name.startswith("lcv-demo-")
        (folder / "a").mkdir()
        (folder / "a" / "b").touch()
    assert not folder.exists()


def test_signals_end_it_and_are_put_back():
    ours = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = [signal.getsignal(each) for each in ours]
    for number in ours:
        with module._until_told() as told:
            assert not told.is_set()
            signal.raise_signal(number)
            assert told.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert [signal.getsignal(each) for each in ours] == before


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(os, "environ", {"GRADIO_SHARE": "True", "NO_PROXY": "here", "HOME": "/"})
    return os


def test_the_framework_is_told_to_keep_to_itself(tmp_path, environment, monkeypatch):
    framework = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "gradio", framework)
    assert module._gradio(tmp_path) is framework
    found = {name: each for name, each in environment.environ.items() if "PYTEST" not in name}
    assert found == {
        "HOME": "/",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_TEMP_DIR": str(tmp_path),
        "GRADIO_EXAMPLES_CACHE": str(tmp_path / "examples"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "here,127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


@pytest.mark.parametrize("browser", [True, False])
def test_how_the_page_is_launched(browser, monkeypatch, capsys):
    """Nothing is shared, monitored or kept; what is asked for at the start is passed on."""
    needs("gradio")
    import lcv.demo.networks
    import lcv.demo.page

    told, opened = {}, []

    class Page:
        def queue(self, **how):
            told["queue"] = how

        def launch(self, **how):
            told["launch"] = how
            signal.raise_signal(signal.SIGTERM)
            return None, "http://127.0.0.1:7999/", None

    def build_page(folder, models, iters):
        told.update(folder=folder, models=models, iters=iters)
        return Page()

    framework = SimpleNamespace(close_all=lambda verbose: told.update(closed=verbose))
    monkeypatch.setattr(module, "_gradio", lambda folder: framework)
    monkeypatch.setattr(module, "_taken", lambda port: None)
    monkeypatch.setattr(lcv.demo.page, "build_page", build_page)
    monkeypatch.setattr(lcv.demo.networks, "add_network", lambda name: f"own {name}")
    monkeypatch.setattr("webbrowser.open", opened.append)
    chosen = {"models": ("a", "b"), "iters": 3} if browser else {}
    module.serve(port=7999, browser=browser, **chosen)
    assert told["queue"] == {"max_size": 8, "default_concurrency_limit": 1, "api_open": False}
    how = told["launch"]
    yes = {name for name, value in how.items() if value is True}
    no = {name for name, value in how.items() if value is False}
    assert yes == {"prevent_thread_lock", "quiet"}
    assert no == {
        "share",
        "inbrowser",
        "show_error",
        "enable_monitoring",
        "run_history",
        "ssr_mode",
        "pwa",
        "mcp_server",
    }
    assert (how["server_name"], how["server_port"]) == ("127.0.0.1", 7999)
    assert (how["allowed_paths"], how["footer_links"]) == ([], [])
    assert (how["max_file_size"], how["state_session_capacity"]) == (64 * 2**20, 4)
    (middleware,) = how["app_kwargs"]["middleware"]
    assert middleware.kwargs == {"folder": told["folder"]}
    assert told["closed"] is False
    assert opened == (["http://127.0.0.1:7999/"] if browser else [])
    assert (told["models"], told["iters"]) == (
        (("own a", "own b"), 3)
        if browser
        else (tuple(f"own {name}" for name in lcv.demo.networks.MODELS), 12)
    )
    wanted = (
        "http://127.0.0.1:7999/ shows the page; it answers this machine only. Ctrl-C ends it.\n"
    )
    assert capsys.readouterr().out == wanted
    assert not told["folder"].exists()
