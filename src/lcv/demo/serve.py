"""Start the page on this machine, and leave nothing behind when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lcv.errors import ArgumentError, BackendError

HOST = "127.0.0.1"
PORTS = range(7860, 7960)
MISSING = "the page needs gradio, which is not installed: pip install 'lcv-flow[demo]'"


def serve(
    host: str = HOST,
    port: int | None = None,
    *,
    browser: bool = True,
    models: tuple[str, ...] | None = None,
    iters: int = 12,
) -> None:
    """Serve the page until the process is interrupted or told to end.

    host:   127.0.0.1 or localhost; no other is possible
    port:   by default the first free one from 7860 on
    models, iters: what is chosen when the page opens
    """
    check_host(host)
    port = free_port() if port is None else check_port(port)
    with _own_folder() as folder, _until_told() as told:
        gradio = _gradio(folder)
        from lcv.demo.networks import MODELS, add_network

        ticked = [add_network(name) for name in models or MODELS]
        from starlette.middleware import Middleware

        from lcv.demo.gate import Gate
        from lcv.demo.limits import MOST_BYTES, MOST_SESSIONS, MOST_WAITING
        from lcv.demo.look import CSS, theme
        from lcv.demo.page import build_page

        page = build_page(folder, tuple(ticked), iters)
        page.queue(max_size=MOST_WAITING, default_concurrency_limit=1, api_open=False)
        _, url, _ = page.launch(
            server_name=HOST,
            server_port=port,
            share=False,
            inbrowser=False,
            prevent_thread_lock=True,
            quiet=True,
            show_error=False,
            allowed_paths=[],
            max_file_size=MOST_BYTES,
            state_session_capacity=MOST_SESSIONS,
            enable_monitoring=False,
            run_history=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
            footer_links=[],
            app_kwargs={"middleware": [Middleware(Gate, folder=folder)]},
            theme=theme(),
            css=CSS,
        )
        print(f"{url} shows the page; it answers this machine only. Ctrl-C ends it.", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(url)
        told.wait()
        gradio.close_all(verbose=False)


def check_host(host: str) -> None:
    """Refuse every address that others could reach."""
    if host not in (HOST, "localhost"):
        raise ArgumentError(
            f"--host is {host!r}, but the page is for this machine only: wanted {HOST}. To see it "
            f"from another one, forward a port: ssh -L 7860:{HOST}:7860 THIS_MACHINE"
        )


def check_port(port: int) -> int:
    """Refuse a port that does not exist or that somebody else listens on."""
    if not 1 <= port <= 65535:
        raise ArgumentError(f"--port is {port}, wanted a number from 1 to 65535")
    reason = _taken(port)
    if reason is not None:
        raise ArgumentError(
            f"--port {port} cannot be used: {reason}; leave it out, or take another"
        )
    return port


def free_port() -> int:
    """The first free port of PORTS."""
    for port in PORTS:
        if _taken(port) is None:
            return port
    raise BackendError(
        f"the ports {PORTS[0]} to {PORTS[-1]} are all in use; choose another with --port"
    )


def _taken(port: int) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            return str(error.strerror)
    return None


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder that only we may read, gone at the end with all that is in it."""
    folder = Path(tempfile.mkdtemp(prefix="lcv-demo-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """An event that is set when the process is interrupted or asked to end."""
    told = threading.Event()

    def tell(number: int, frame: FrameType | None) -> None:
        if told.is_set():  # asked twice: at once, then
            raise KeyboardInterrupt
        told.set()

    signals = [signal.SIGINT, signal.SIGTERM]
    signals += [getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name)]
    before = {each: signal.signal(each, tell) for each in signals}
    try:
        yield told
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _gradio(folder: Path):  # type: ignore[no-untyped-def]
    """The framework, told before it wakes to keep to our folder and to itself."""
    for name in [name for name in os.environ if name.startswith("GRADIO_")]:
        del os.environ[name]  # whatever another page was told is not for this one
    os.environ |= {
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_TEMP_DIR": str(folder),
        "GRADIO_EXAMPLES_CACHE": str(folder / "examples"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
    }
    # It asks its own server whether it is up, which no proxy can answer.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), HOST, "localhost"]))
    try:
        import gradio
    except ModuleNotFoundError as error:
        if error.name != "gradio":
            raise
        raise BackendError(MISSING) from None
    return gradio
