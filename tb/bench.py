"""The bench of a component: clock, reset, stream agents and scoreboards, one step a cycle.

A cocotb test makes a :class:`Bench`, sends and expects values, and runs it::

    @cocotb.test()
    async def random_traffic(dut):
        bench = Bench(dut)
        source = bench.source("input", layout, pause="random")
        output = bench.sink("output", layout, pause="cyclic")
        await bench.reset()
        source.extend(values)
        output.extend(model(values))
        await bench.finish()

Cocotb tests are named without ``test_``; the pytest function ``test_*`` of the same
module starts them through :func:`tb.run.run_bench`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cocotb
from cocotb.triggers import Timer

from planezip.model.format import Parameters, Tag
from tb import pauses
from tb.scoreboard import Scoreboard
from tb.streams import StreamMonitor, StreamPort, StreamSink, StreamSource, is_four_state

__all__ = ["ARGUMENTS", "Bench", "arguments_from_json", "arguments_to_json"]

ARGUMENTS = "PLANEZIP_BENCH"
_HALF_NS = 5


def arguments_to_json(arguments: Mapping[str, Any]) -> str:
    """Arguments of a bench (JSON values and :class:`Parameters`) as text."""

    def default(value: object) -> object:
        if isinstance(value, Parameters):
            return {
                "$parameters": {
                    "symbols_per_block": value.symbols_per_block,
                    "symbol_bits": value.symbol_bits,
                    "blocks_per_chunk": value.blocks_per_chunk,
                    "encodings": sorted(value.encodings),
                }
            }
        raise TypeError(f"bench arguments must be JSON values or Parameters, not {value!r}")

    return json.dumps(dict(arguments), default=default, sort_keys=True)


def arguments_from_json(text: str) -> dict[str, Any]:
    """The inverse of :func:`arguments_to_json`."""

    def hook(value: dict[str, Any]) -> Any:
        if set(value) != {"$parameters"}:
            return value
        fields = value["$parameters"]
        return Parameters(
            symbols_per_block=fields["symbols_per_block"],
            symbol_bits=tuple(fields["symbol_bits"]),
            blocks_per_chunk=fields["blocks_per_chunk"],
            encodings=frozenset(Tag(tag) for tag in fields["encodings"]),
        )

    result: dict[str, Any] = json.loads(text, object_hook=hook)
    return result


class Bench:
    """Steps a component that has the ports ``clk`` and ``rst``, or neither.

    Attributes
    ----------
    seed : int
        From COCOTB_RANDOM_SEED.
    rng : random.Random
        Seeded with it.
    cycle : int
        Cycles stepped so far.
    arguments : dict
        The ``arguments`` that :func:`tb.run.run_bench` was given.
    four_state : bool
        Whether the simulator knows X.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.seed = int(os.environ["COCOTB_RANDOM_SEED"])
        self.rng = random.Random(self.seed)
        self.cycle = 0
        self.arguments = arguments_from_json(os.environ.get(ARGUMENTS, "{}"))
        self.four_state = is_four_state(cocotb.SIM_NAME)
        self._clk = getattr(dut, "clk", None)
        self._rst = getattr(dut, "rst", None)
        self._sources: list[StreamSource] = []
        self._sinks: list[tuple[StreamSink, StreamMonitor]] = []
        self._scoreboards: list[Scoreboard] = []

    def source(
        self, name: str, layout: Any = None, pause: str | Iterator[int] = "never"
    ) -> StreamSource:
        """A driver of the input stream ``name``."""
        port = StreamPort(self.dut, name, layout)
        source = StreamSource(port, self.rng, self.four_state, self._pause(pause))
        self._sources.append(source)
        return source

    def sink(
        self, name: str, layout: Any = None, pause: str | Iterator[int] = "never"
    ) -> Scoreboard:
        """A sink, a monitor and a scoreboard on the output stream ``name``."""
        monitor = self.monitor(name, layout, pause)
        scoreboard = Scoreboard(monitor.port, self.seed)
        monitor.listen(scoreboard.check)
        self._scoreboards.append(scoreboard)
        return scoreboard

    def monitor(
        self, name: str, layout: Any = None, pause: str | Iterator[int] = "never"
    ) -> StreamMonitor:
        """A sink and a monitor on the output stream ``name``, without expectations."""
        port = StreamPort(self.dut, name, layout)
        monitor = StreamMonitor(port)
        self._sinks.append((StreamSink(port, self._pause(pause)), monitor))
        return monitor

    def monitor_of(self, scoreboard: Scoreboard) -> StreamMonitor:
        """The monitor behind a scoreboard: values and time stamps."""
        return next(monitor for _, monitor in self._sinks if monitor.port is scoreboard.port)

    async def step(self, cycles: int = 1) -> None:
        """Run the clock."""
        agents = [*self._sources, *(agent for pair in self._sinks for agent in pair)]
        for _ in range(cycles):
            if self._clk is not None:
                self._clk.value = 0
            for agent in agents:
                agent.drive(self.cycle)
            await Timer(_HALF_NS, unit="ns")
            for agent in agents:
                agent.sample(self.cycle)
            if self._clk is not None:
                self._clk.value = 1
            await Timer(_HALF_NS, unit="ns")
            self.cycle += 1

    async def reset(self, cycles: int = 2) -> None:
        """Reset the component; queued values and expectations are dropped."""
        agents = [*self._sources, *(agent for pair in self._sinks for agent in pair)]
        for agent in (*agents, *self._scoreboards):
            agent.clear()
        if self._clk is None or self._rst is None:
            return
        self._rst.value = 1
        for source in self._sources:
            source.port.valid.value = 0
        for _ in range(cycles):
            self._clk.value = 0
            await Timer(_HALF_NS, unit="ns")
            self._clk.value = 1
            await Timer(_HALF_NS, unit="ns")
            self.cycle += 1
        self._rst.value = 0

    async def until(self, done: Callable[[], bool], timeout_cycles: int = 10_000) -> bool:
        """Step until ``done()``; False if ``timeout_cycles`` pass without."""
        for _ in range(timeout_cycles):
            if done():
                return True
            await self.step()
        return done()

    async def finish(self, timeout_cycles: int = 10_000, quiet_cycles: int = 40) -> None:
        """Step until everything is sent and seen, then check that nothing is left over.

        Raises
        ------
        AssertionError
            If a value is missing after ``timeout_cycles`` without any progress, or one
            too many comes within ``quiet_cycles`` of the last one.
        """

        def left() -> int:
            sources = sum(source.left for source in self._sources)
            return sources + sum(scoreboard.left for scoreboard in self._scoreboards)

        last, waited = left(), 0
        while last and waited < timeout_cycles:
            await self.step()
            now = left()
            last, waited = now, 0 if now < last else waited + 1
        await self.step(quiet_cycles)
        for scoreboard in self._scoreboards:
            scoreboard.finish()
        for source in self._sources:
            if source.left:
                raise AssertionError(
                    f"{source.port.name}: {source.left} values were never taken (seed {self.seed})"
                )
        for sink, monitor in self._sinks:
            if sink.values != monitor.values:
                raise AssertionError(f"{sink.port.name}: sink and monitor saw different values")

    def _pause(self, pause: str | Iterator[int]) -> Iterator[int]:
        return pauses.pattern(pause, self.rng) if isinstance(pause, str) else pause
