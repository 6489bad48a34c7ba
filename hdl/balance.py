"""Balance: which lane gets the next chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.model.format import Parameters

__all__ = ["Balance", "least"]


def least(loads: Sequence[int]) -> int:
    """Software model: the lane of the next chunk, from the blocks that each has been given."""
    return loads.index(min(loads))


class Balance(wiring.Component):
    """The lane that has been given the fewest blocks so far; of several the first one.

    So lanes take turns in a long tensor, and no lane is ever ahead of another by more than
    a chunk, whatever the lengths of the tensors: all chunks together take as long as their
    blocks divided by the lanes, and one chunk. What lane a chunk goes to does not depend
    on time.

    Parameters
    ----------
    parameters : Parameters
    lanes : int

    Attributes
    ----------
    deal : In(1), blocks : In
        A chunk of so many blocks goes to ``lane``, which changes in the next cycle.
    lane : Out
    """

    def __init__(self, parameters: Parameters, lanes: int) -> None:
        self._lanes = lanes
        # Loads are compared modulo: they differ by no more than a chunk.
        self._bits = parameters.blocks_per_chunk.bit_length() + 1
        super().__init__(
            {
                "deal": In(1),
                "blocks": In(range(parameters.blocks_per_chunk + 1)),
                "lane": Out(range(max(2, lanes))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        after = []
        for k in range(self._lanes):
            load = Signal(self._bits, name=f"load_{k}")
            new = Signal(self._bits, name=f"after_{k}")
            m.d.comb += new.eq(load + Mux(self.lane == k, self.blocks, 0))
            with m.If(self.deal):
                m.d.sync += load.eq(new)
            after.append((Value.cast(k), new))
        while len(after) > 1:
            pairs = zip(after[::2], after[1::2], strict=True)
            after = [self._less(m, first, second) for first, second in pairs]
        with m.If(self.deal):
            m.d.sync += self.lane.eq(after[0][0])
        return m

    def _less(
        self, m: Module, first: tuple[Value, Value], second: tuple[Value, Value]
    ) -> tuple[Value, Value]:
        """Number and load of the one with less, the first if they are equal."""
        takes = Signal(name="takes")
        m.d.comb += takes.eq((second[1] - first[1])[self._bits - 1])
        load = Signal(self._bits, name="least")
        number = Signal.like(self.lane, name="number")
        m.d.comb += [
            load.eq(Mux(takes, second[1], first[1])),
            number.eq(Mux(takes, second[0], first[0])),
        ]
        return number, load
