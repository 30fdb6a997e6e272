from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.storage.threads import WorkerThreads


@pytest.fixture
def threads() -> WorkerThreads:
    return WorkerThreads(4, name="test")


@pytest.fixture(params=["run", "run_together"])
def run(request: pytest.FixtureRequest, threads: WorkerThreads) -> Callable[..., Any]:
    return getattr(threads, request.param)


async def test_results_and_errors_reach_their_callers(run):
    def divide(number: int) -> float:
        return 12 / number

    outcomes = await asyncio.gather(*(run(divide, n) for n in (1, 0, 2, 3) * 10), return_exceptions=True)
    assert [type(o) if isinstance(o, Exception) else o for o in outcomes] == [
        12,
        ZeroDivisionError,
        6,
        4,
    ] * 10


async def test_never_more_threads_than_allowed(threads):
    running, most, lock = 0, 0, threading.Lock()
    go_on = threading.Event()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go_on.wait(0.01)
        with lock:
            running -= 1

    await asyncio.gather(*(threads.run(work) for _ in range(20)))
    assert most == 4


async def test_a_slow_call_does_not_hold_up_the_others(threads):
    go_on = threading.Event()
    slow = asyncio.ensure_future(threads.run(go_on.wait, 30))
    await asyncio.sleep(0)
    for _ in range(10):
        assert await asyncio.wait_for(threads.run(abs, -1), timeout=5) == 1
    go_on.set()
    assert await slow


async def test_calls_of_one_moment_share_a_thread_up_to_a_bound(threads):
    names = await asyncio.gather(*(threads.run_together(lambda: threading.current_thread().name) for _ in range(16)))
    assert len(set(names)) == 1


async def test_a_burst_does_not_wait_for_the_one_before(threads):
    go_on = threading.Event()
    slow = asyncio.ensure_future(threads.run_together(go_on.wait, 30))
    await asyncio.sleep(0.01)
    assert await asyncio.wait_for(threads.run_together(abs, -1), timeout=5) == 1
    go_on.set()
    assert await slow


async def test_a_call_cancelled_before_it_began_is_not_made():
    threads, go_on, made = WorkerThreads(1, name="test"), threading.Event(), []
    first = threads.run(go_on.wait, 30)
    second = threads.run(made.append, "second")
    second.cancel()
    go_on.set()
    assert await first
    assert await threads.run(made.copy) == []


async def test_stop_iteration_is_an_error_like_any_other(run):
    outcomes = await asyncio.gather(*(run(next, iter(())), run(abs, -1)), return_exceptions=True)
    assert isinstance(outcomes[0], RuntimeError)
    assert outcomes[1] == 1


async def test_a_system_without_threads_to_spare_is_an_error_not_a_wait(run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(10):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await asyncio.wait_for(run(abs, -1), timeout=5)
    assert await asyncio.wait_for(run(abs, -1), timeout=5) == 1


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_failed_call_keeps_nothing_alive(threads):
    class Content:
        pass

    def fail(content: Content) -> None:
        raise OSError("full")

    content = Content()
    gone = weakref.ref(content)

    async def main(content: Content) -> None:
        with contextlib.suppress(OSError):
            await threads.run(fail, content)

    gc.disable()
    try:
        asyncio.run(main(content))
        del content
        assert comes_true(lambda: gone() is None)
    finally:
        gc.enable()


def comes_true(condition: Callable[[], bool]) -> bool:
    """A thread lets go of an answer on its way to bed, a moment after the caller has it."""
    for _ in range(1_000):
        if condition():
            return True
        time.sleep(0.001)
    return False


def test_what_was_handed_over_is_not_kept(threads):
    class Content:
        pass

    content = Content()
    gone = weakref.ref(content)

    async def main(content: Content) -> None:
        assert await threads.run(lambda given: given, content) is content

    asyncio.run(main(content))
    del content
    assert comes_true(lambda: gone() is None)


async def test_a_caller_that_gave_up_harms_nothing(threads):
    go_on = threading.Event()
    abandoned = asyncio.ensure_future(threads.run(go_on.wait, 30))
    await asyncio.sleep(0.01)
    abandoned.cancel()
    with pytest.raises(asyncio.CancelledError):
        await abandoned
    go_on.set()
    assert await threads.run(abs, -1) == 1


def test_many_event_loops_share_the_threads(run):
    async def work() -> list[int]:
        return await asyncio.gather(*(run(abs, -number) for number in range(50)))

    results: list[list[int]] = []
    loops = [threading.Thread(target=lambda: results.append(asyncio.run(work()))) for _ in range(6)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert results == [list(range(50))] * 6


def test_an_event_loop_that_closed_meanwhile_harms_nothing(threads):
    go_on, done = threading.Event(), threading.Event()

    def slow() -> None:
        go_on.wait(30)
        done.set()

    async def leave() -> None:
        threads.run(slow)
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    go_on.set()
    assert done.wait(10)
    asyncio.run(leave())


def in_subprocess(script: str, *arguments: object) -> str:
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_starts_threads_of_its_own(tmp_path):
    script = """
        import asyncio, os, sys
        from holdfast import FileStorage
        storage = FileStorage(sys.argv[1])
        before = asyncio.run(storage.store("key", b"before"))
        child = os.fork()
        reference = asyncio.run(storage.store("key", b"after"))
        assert asyncio.run(storage.retrieve(before)) == (b"before", "text/plain")
        assert asyncio.run(storage.retrieve(reference)) == (b"after", "text/plain")
        if child == 0:
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert in_subprocess(script, tmp_path) == "7\n"


def test_a_process_ends_without_waiting_for_its_threads():
    script = """
        import asyncio, time
        from holdfast.storage.threads import WorkerThreads
        async def main():
            WorkerThreads(1, name="t").run(time.sleep, 300)
            await asyncio.sleep(0.05)
        asyncio.run(main())
        print("ended")
    """
    assert in_subprocess(script) == "ended\n"
