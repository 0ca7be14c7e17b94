"""Tasks on a Ray cluster. Nothing else in lcv knows Ray.

with Cluster("auto") as cluster:
    for result in cluster.map(function, common, tasks):     # as they finish
        ...

A worker has one GPU, or a few cores where the cluster has no GPU. A task whose worker dies is run
again on another one, so a task must leave the same files however often it is run. Functions and
tasks are pickled; workers on other machines need lcv and the same files under the same paths.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from types import TracebackType
from typing import Any, Self

from lcv.errors import ArgumentError, LcvError

LOCAL = "local"
"""The address of a cluster that is started on this machine and ends with the command."""
RETRIES = 3
MOST_CORES = 4  # of a worker without a GPU
# So many tasks for each worker are handed out at a time; a job may have a million.
AHEAD = 4


class Cluster:
    """Workers of a cluster while the block runs. address: LOCAL, "auto", or as ray.init takes it

    gpus:        whether a worker may have a GPU
    workers:     how many there are; cores: of each
    per_machine: the most workers on one machine, which share its memory
    """

    def __init__(self, address: str = LOCAL, *, gpus: bool = True) -> None:
        # Without these, Ray sends usage statistics, and logs errors that we handle.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_IGNORE_UNHANDLED_ERRORS"] = "1"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise ArgumentError(
                "--ray needs Ray, which is not installed; run pip install 'lcv-flow[ray]'"
            ) from None
        self.ray: Any = ray
        self.address, self._wants_gpus = address, gpus

    def __enter__(self) -> Self:
        local = {"include_dashboard": False} if self.address == LOCAL else {}
        try:
            if self.address not in (LOCAL, "auto"):
                _check_reachable(self.address)  # Ray itself would try for minutes
            self.ray.init(
                self.address,
                logging_level=logging.ERROR,
                log_to_driver=False,
                **local,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ArgumentError(
                f"--ray {self.address}: no cluster answers: {error}; wanted auto, or HOST:PORT as "
                f"`ray start --head` prints it"
            ) from None
        gpus = int(self.ray.cluster_resources().get("GPU", 0)) if self._wants_gpus else 0
        there = [node["Resources"].get("CPU", 0) for node in self.ray.nodes() if node["Alive"]]
        nodes = [int(cores) for cores in there if cores >= 1] or [1]  # a task has to fit on one
        self.cores = max(1, min(MOST_CORES, min(nodes) // 2))
        self.workers = gpus or sum(cores // self.cores for cores in nodes)
        self.per_machine = 1 if gpus else max(nodes) // self.cores
        self.needs = {"num_gpus": 1, "num_cpus": 1} if gpus else {"num_cpus": self.cores}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ray.shutdown()

    def map(
        self, function: Callable[[Any, Any], Any], common: Any, tasks: Iterable[Any]
    ) -> Generator[Any, None, None]:
        """Yield function(common, task) for each task, as they finish.

        When this is ended early, by Ctrl-C say, the tasks that are left are cancelled.
        """
        remote = self.ray.remote(**self.needs, max_retries=RETRIES)(function)
        common = self.ray.put(common)
        waiting, running = iter(tasks), list[Any]()
        try:
            while True:
                room = AHEAD * self.workers - len(running)
                running += [remote.remote(common, task) for task in islice(waiting, room)]
                if not running:
                    return
                (ended, *_), running = self.ray.wait(running)
                yield self._result(ended)
        finally:
            for each in running:
                self.ray.cancel(each, force=True)

    def _result(self, ended: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(ended)
        except errors.RayTaskError as error:
            cause = error.cause
            cannot_import = str(cause).startswith("The remote function failed to import")
            if not cannot_import and not isinstance(cause, OSError | ImportError):
                raise cause from None
            last_line = str(cause).strip().rpartition("\n")[2]
            why = f"a worker of the cluster failed: {last_line}"
            if cannot_import or isinstance(cause, FileNotFoundError | ImportError):
                why += "; every machine needs lcv, and the same files under the same paths"
            raise LcvError(why) from error
        except errors.RayError as error:
            why = " ".join(str(error).split())[:300]
            raise LcvError(
                f"a task of the cluster failed after up to {RETRIES + 1} tries: {why}"
            ) from None


def _check_reachable(address: str) -> None:
    """Refuse an address that does not answer."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("not of the form HOST:PORT")
    with socket.create_connection((host, int(port)), timeout=10):
        pass
