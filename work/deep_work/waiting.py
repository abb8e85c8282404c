"""Waiting for something slow that can be left at any moment: it runs in a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from django.db import connections

from work.deep_work.stop import Stop, Stopped, StopReason

T = TypeVar("T")
_STOP, _END = object(), object()


class TookTooLong(Exception):
    """It was left because its time was up."""


def events_of(make: Callable[[], Iterator[T]], *, stop: Stop, until: float) -> Iterator[T]:
    """What `make()` yields, as it comes. Leaving early ends it after its next event.

    `until` is a moment of `time.monotonic`. Raises Stopped, TookTooLong, and whatever `make()` raises.
    """
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left = threading.Event()
    _in_thread(lambda: _produce(make, told, left), "model")
    with stop.listening(lambda: told.put(_STOP)):
        try:
            while (event := _next(told, until)) is not _END:
                if event is _STOP:
                    raise Stopped
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            left.set()


def result_of(work: Callable[[], T], *, stop: Stop, inner: Stop, until: float, grace_seconds: float) -> T:
    """What `work()` returns. When it is left, `inner` is set, so that it can end too.

    A stop because this process ends leaves it `grace_seconds`. Raises Stopped, TookTooLong, and whatever `work()` raises.
    """
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    _in_thread(lambda: told.put(_attempt(work)), "tool")
    with stop.listening(lambda: told.put(_STOP)):
        try:
            answer = _next(told, until)
            if answer is _STOP and stop.reason == StopReason.LEAVING:
                answer = _next_in_grace(told, min(until, time.monotonic() + grace_seconds))
            if answer is _STOP:
                raise Stopped
        except (Stopped, TookTooLong):
            inner.set(StopReason.ABANDONED)
            raise
    value, error = answer
    if error is not None:
        raise error
    result: T = value
    return result


def _next_in_grace(told: queue.SimpleQueue[Any], until: float) -> Any:
    try:
        return _next(told, until)
    except TookTooLong:
        return _STOP


def _next(told: queue.SimpleQueue[Any], until: float) -> Any:
    try:
        return told.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        raise TookTooLong from None


def _produce(make: Callable[[], Iterator[Any]], told: queue.SimpleQueue[Any], left: threading.Event) -> None:
    try:
        for event in make():
            if left.is_set():
                return
            told.put(event)
        told.put(_END)
    except BaseException as error:
        told.put(_expected(error))


def _attempt(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:
        return None, _expected(error)


def _expected(error: BaseException) -> Exception:
    """The error as the job's thread may get it: a library that wants to end the process ends only its own part."""
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"{type(error).__name__} was raised")
    wrapped.__cause__ = error
    return wrapped


def _in_thread(work: Callable[[], None], name: str) -> None:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    threading.Thread(target=run, name=name, daemon=True).start()
