"""Who runs the cases of a suite: processes of this machine, or a Ray cluster. Both hand results back as they come."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from typing import Any, Protocol

from controller.backtest.suite import Case, alike, run_cases
from controller.core.errors import InputError

Ran = Generator[tuple[Case, dict[str, Any]], None, None]
INSTALL_RAY = "pip install 'tidegate[ray]'"


class Workers(Protocol):
    """Runs cases, in any order."""

    def run(self, cases: Sequence[Case], code: str) -> Ran:
        """Yield each case with its result as soon as it has one."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """So many processes here. Ending the iteration early, by whatever, ends them with what they are at."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(self, cases: Sequence[Case], code: str) -> Ran:
        """Yield each case with its result; ``BrokenProcessPool`` where a process was killed."""
        context = multiprocessing.get_context("spawn")
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(min(self.jobs, max(len(cases), 1)), context, _begin)
        try:
            futures = {pool.submit(run_cases, group, code): group for group in alike(cases)}
            for future in as_completed(futures):
                yield from zip(futures[future], future.result(), strict=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise
        pool.shutdown()


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class Ray:
    """A Ray cluster. Each of its machines needs the same tidegate and the traces at the same paths."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, cases: Sequence[Case], code: str) -> Ran:
        """Yield each case with its result; ``InputError`` where Ray is not installed or does not answer."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise InputError.one("--ray", self.address, f"Ray, which is not installed: {INSTALL_RAY}") from error
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            allowed = "the address of a running Ray cluster, such as 127.0.0.1:6379 (`ray start --head` prints it)"
            raise InputError.one("--ray", self.address, allowed) from error
        try:
            remote = ray.remote(run_cases)
            waiting = {remote.remote(group, code): group for group in alike(cases)}
            while waiting:
                ready, _ = ray.wait(list(waiting), num_returns=1)
                for reference in ready:
                    yield from zip(waiting.pop(reference), ray.get(reference), strict=True)
        finally:
            ray.shutdown()
