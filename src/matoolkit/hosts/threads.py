"""Threads that the process does not wait for when it ends: for functions that cannot be stopped, and for the bus."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

_Call = tuple["Future[Any]", "Callable[[], Any]"]


class DaemonThreads(Executor):
    """At most so many threads, begun when they are needed and kept until the executor is shut down."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._idle = 0
        self._is_shut = False

    def submit(
        self, fn: Callable[Arguments, Returned], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Returned]:
        """Have it done by the next thread that is free."""
        future: Future[Returned] = Future()
        with self._lock:
            if self._is_shut:
                raise RuntimeError(f"the threads of {self._name} have ended")
            self._calls.put((future, lambda: fn(*args, **kwargs)))
            if self._idle:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                Thread(target=self._serve, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the signature of `Executor`
        """Have every thread end after what it is doing; nobody waits for that."""
        with self._lock:
            if not self._is_shut:
                self._is_shut = True
                for _ in range(self._threads):
                    self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            if future.set_running_or_notify_cancel():
                try:
                    returned = work()
                except BaseException as error:  # noqa: BLE001 - it belongs to who asked
                    future.set_exception(error)
                else:
                    future.set_result(returned)
            del call, future, work
            with self._lock:
                self._idle += 1
