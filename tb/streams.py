"""Drivers and monitors of valid/ready streams.

They are stepped by :class:`tb.bench.Bench`: every cycle it calls ``drive`` of each
agent after the falling edge, and ``sample`` right before the rising edge, when all
values have settled. So nothing races with the clock, on any simulator.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cocotb.types import Logic, LogicArray

from tb.layouts import pack, unpack
from tb.pauses import never

__all__ = ["StreamMonitor", "StreamPort", "StreamSink", "StreamSource", "is_four_state", "read"]


def read(handle: Any) -> int | str:
    """Value of a signal; a string of 0, 1, X, Z if a bit of it is not 0 or 1."""
    value = handle.value
    return int(value) if value.is_resolvable else str(value)


def is_four_state(simulator: str) -> bool:
    """Whether a simulator, by the name cocotb gives it, knows X."""
    return "verilator" not in simulator.lower()


class StreamPort:
    """Handles of one stream port.

    Parameters
    ----------
    dut : cocotb handle
    name : str
        Name of the port in the component; ports of nested interfaces with ``__``.
    layout : Amaranth layout or shape, optional
        Of the payload; without it values are integers.
    """

    def __init__(self, dut: Any, name: str, layout: Any = None) -> None:
        self.name = name
        self.layout = layout
        self.payload = getattr(dut, f"{name}__payload")
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready", None)  # absent on always-ready streams
        self.width = len(self.payload)

    def pack(self, value: Any) -> int:
        return pack(self.layout, value)

    def unpack(self, bits: int) -> Any:
        return unpack(self.layout, bits)


class StreamSource:
    """Drives a stream input of the component.

    While it has nothing to send the payload is X on simulators that know X, noise
    on the others: a component that looks at it fails.

    Attributes
    ----------
    times : list of int
        Cycle of each transfer.
    """

    def __init__(
        self,
        port: StreamPort,
        rng: random.Random,
        four_state: bool,
        pause: Iterator[int] | None = None,
    ) -> None:
        self.port = port
        self.pause = never() if pause is None else pause
        self.times: list[int] = []
        self._queue: deque[int] = deque()
        self._rng = rng
        self._four_state = four_state
        self._x: Logic | LogicArray = (
            Logic("X") if port.width == 1 else LogicArray("X" * port.width)
        )
        self._offered = False
        self._idle = False  # and the payload is X

    def send(self, *values: Any) -> None:
        """Queue values (integers, or fields of the port's layout)."""
        self._queue.extend(self.port.pack(value) for value in values)

    def extend(self, values: Iterable[Any]) -> None:
        self.send(*values)

    @property
    def left(self) -> int:
        """Values not transferred yet."""
        return len(self._queue)

    def clear(self) -> None:
        """Drop what is queued, for a reset."""
        self._queue.clear()
        self._offered = self._idle = False

    def drive(self, cycle: int) -> None:
        paused = next(self.pause)
        if self._offered:
            return
        self._offered = bool(self._queue) and not paused
        if self._offered or not self._idle:
            self.port.payload.value = self._queue[0] if self._offered else self._noise()
            self.port.valid.value = int(self._offered)
            self._idle = self._four_state and not self._offered

    def sample(self, cycle: int) -> None:
        if not self._offered:
            return  # ready may depend on a payload that is not there
        ready = 1 if self.port.ready is None else read(self.port.ready)
        if isinstance(ready, str):
            raise AssertionError(f"cycle {cycle}: X in {self.port.name}.ready")
        if ready:
            self._queue.popleft()
            self._offered = False
            self.times.append(cycle)

    def _noise(self) -> int | Logic | LogicArray:
        return self._x if self._four_state else self._rng.getrandbits(self.port.width)


class StreamMonitor:
    """Watches a stream, and that valid and payload hold until ready.

    Attributes
    ----------
    values : list of int
        Payload of each transfer.
    times : list of int
        Cycle of each transfer.
    first_valid : int or None
        Cycle in which valid rose for the first time.
    """

    def __init__(self, port: StreamPort) -> None:
        self.port = port
        self.values: list[int] = []
        self.times: list[int] = []
        self.first_valid: int | None = None
        self._listeners: list[Callable[[int], None]] = []
        self._waiting: int | None = None

    def listen(self, listener: Callable[[int], None]) -> None:
        """Call ``listener(payload)`` at each transfer."""
        self._listeners.append(listener)

    def clear(self) -> None:
        """Forget a value that waits for ready, for a reset."""
        self._waiting = None

    def drive(self, cycle: int) -> None:
        pass

    def sample(self, cycle: int) -> None:
        port = self.port
        valid = self._known(cycle, "valid", read(port.valid))
        ready = 1 if port.ready is None else self._known(cycle, "ready", read(port.ready))
        if not valid:
            if self._waiting is not None:
                raise AssertionError(f"cycle {cycle}: {port.name}.valid fell before ready rose")
            return
        payload = self._known(cycle, "payload", read(port.payload))
        if self._waiting is not None and payload != self._waiting:
            raise AssertionError(
                f"cycle {cycle}: {port.name}.payload changed before ready rose:"
                f" {self._waiting:#x} to {payload:#x}"
            )
        if self.first_valid is None:
            self.first_valid = cycle
        self._waiting = None if ready else payload
        if ready:
            self.values.append(payload)
            self.times.append(cycle)
            for listener in self._listeners:
                listener(payload)

    def _known(self, cycle: int, what: str, value: int | str) -> int:
        if isinstance(value, str):
            raise AssertionError(f"cycle {cycle}: X in {self.port.name}.{what}: {value}")
        return value


class StreamSink:
    """Drives ``ready`` of a stream output of the component, and keeps what it takes."""

    def __init__(self, port: StreamPort, pause: Iterator[int] | None = None) -> None:
        self.port = port
        self.pause = never() if pause is None else pause
        self.values: list[int] = []
        self._ready: int | None = None

    def clear(self) -> None:
        pass

    def drive(self, cycle: int) -> None:
        before, self._ready = self._ready, 1 - next(self.pause)
        if self.port.ready is not None and self._ready != before:
            self.port.ready.value = self._ready

    def sample(self, cycle: int) -> None:
        if self._ready and read(self.port.valid) == 1:
            value = read(self.port.payload)
            assert isinstance(value, int), f"cycle {cycle}: X in {self.port.name}.payload: {value}"
            self.values.append(value)
