"""Bit-plane transposition of a block, in a single register of one block.

The block is a square of B x B tiles (B beats of a block). A beat holds the tiles of a
row, a slot of planes the tiles of a column. While a block is read line by line, each
line that has been read takes a line of the next block; so if blocks are transposed, rows
and columns swap from block to block, and no second register is needed.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.geometry import Geometry
from planezip.hdl.wires import any_of, wire, wires
from planezip.model.format import DEFAULT, Parameters
from planezip.model.reference import bits_of, number_of

__all__ = ["Transpose", "slots"]


def slots(
    values: list[int], w: int, parameters: Parameters, beats_per_block: int, planes: bool
) -> list[int]:
    """Software model: what each slot gives for a block of ``values`` (zeros follow up to N)."""
    n, beat = parameters.symbols(w), parameters.block_bits // beats_per_block
    values = values + [0] * (n - len(values))
    if planes:
        bits = [v >> p & 1 for p in range(w - 1, -1, -1) for v in values]
    else:
        bits = [bit for v in values for bit in bits_of(v, w)]
    return [number_of(bits[k : k + beat]) for k in range(0, len(bits), beat)]


class Transpose(wiring.Component):
    """A line in and a line out per cycle; a block can be read from the cycle after its last line.

    Line k of a block may be written in the same cycle in which slot k of the block before
    is read, or later. Lanes may be written to any line up to the current one; what is not
    written reads as zero.

    Parameters
    ----------
    parameters : Parameters
    beats_per_block : int

    Attributes
    ----------
    write : In(1), write_slot : In
        Take line number ``write_slot`` at the end of the cycle.
    row : In(beat_bits), written : In(lanes), line : In
        Data; lanes to write; the line of each lane: what Transform gives.
    width, planes : In
        Of the block written: index of its width; whether it is transposed (else it is read
        in symbol order).
    start : In(1)
        The block that has been written is read from the next cycle on: after its last line.
    read_slot : In
        Slot to be read.
    read_width, read_planes : In
        Of the block read.
    data : Out(beat_bits)
        The planes of the slot, top plane first, or a beat of symbols. Combinational.
    """

    def __init__(self, parameters: Parameters = DEFAULT, beats_per_block: int = 4) -> None:
        self._geometry = g = Geometry(parameters, beats_per_block)
        line_bits = g.beats_per_block.bit_length() - 1
        width = range(max(2, len(parameters.symbol_bits)))
        super().__init__(
            {
                "write": In(1),
                "write_slot": In(line_bits),
                "row": In(g.beat_bits),
                "written": In(g.lanes),
                "line": In(g.lanes * line_bits),
                "width": In(width),
                "planes": In(1),
                "start": In(1),
                "read_slot": In(line_bits),
                "read_width": In(width),
                "read_planes": In(1),
                "data": Out(g.beat_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        g = self._geometry
        across = Signal()  # lines of the block being written are columns
        reads_across = Signal()  # lines of the block being read are columns
        with m.If(self.start):
            m.d.sync += [across.eq(across ^ self.planes), reads_across.eq(across ^ self.planes)]
        tiles = self._write(m, across)
        if not g.has_planes:  # nothing is transposed: lines are always rows
            reads_across = across
        m.d.comb += self.data.eq(self._output(wires(m, self._read(tiles, reads_across), "line")))
        return m

    def _write(self, m: Module, across: Value) -> list[list[Signal]]:
        g = self._geometry
        count, bits = g.beats_per_block, g.beats_per_block.bit_length() - 1
        sources = wires(m, self._input(), "sources")
        now = [self.write & (self.write_slot == k) for k in range(count)]
        lines = [self.line[k : k + bits] for k in range(0, len(self.line), bits)]
        hits = [
            Cat(self.write & self.written[k] & (line == at) for k, line in enumerate(lines))
            for at in range(count)
        ]
        cells = wires(m, [self._per_cell(hit) for hit in hits], "cells")
        tiles: list[list[Any]] = []
        for row in range(count):
            tiles.append([])
            for column in range(count):
                tile = Signal(g.tile_bits, name=f"tile_{row}_{column}", reset_less=True)
                down = wire(m, cells[row] & (~across).replicate(g.tile_bits), "down")
                over = wire(m, cells[column] & across.replicate(g.tile_bits), "over")
                clear = Mux(across, now[column], now[row]).replicate(g.tile_bits)
                m.d.sync += tile.eq(
                    (sources[column] & down) | (sources[row] & over) | (tile & ~clear)
                )
                tiles[row].append(tile)
        return tiles

    def _read(self, tiles: list[list[Signal]], across: Value) -> list[Value]:
        """Tiles of the line ``read_slot``, by AND and OR."""
        count, bits = self._geometry.beats_per_block, self._geometry.tile_bits
        now = [self.read_slot == k for k in range(count)]
        return [
            any_of(
                [tiles[k][at] & (now[k] & ~across).replicate(bits) for k in range(count)]
                + [tiles[at][k] & (now[k] & across).replicate(bits) for k in range(count)]
            )
            for at in range(count)
        ]

    # Cell k * (symbols of a beat) + i of tile (beat, slot) is bit i, counted within the
    # beat, of plane k, counted within the slot. In symbol order the narrowest width's
    # places serve every width.

    def _layouts(self) -> list[int]:
        return list(self._geometry.parameters.symbol_bits)

    def _input(self) -> list[Value]:
        """Cells of the tile of each slot, from the row."""
        g = self._geometry
        tiles = []
        for slot in range(g.beats_per_block):
            options = []
            for w in self._layouts():
                symbols, planes = g.beat_bits // w, g.planes(w)
                options.append(
                    Cat(
                        self.row[i * w + w - 1 - (slot * planes + k)]
                        for k in range(planes)
                        for i in range(symbols)
                    )
                )
            tiles.append(self._by_layout(self.width, self.planes, options))
        return tiles

    def _per_cell(self, lanes: Value) -> Value:
        """The lane flag of each cell of a tile."""
        g = self._geometry
        options = []
        for w in self._layouts():
            symbols, group = g.beat_bits // w, w // g.lane_bits
            options.append(Cat(lanes[i * group] for i in range(symbols)))
        # Equal for every plane of the tile: one choice per lane place, then copies.
        flags = [option.replicate(g.lanes // len(option)) for option in options]
        return self._by_layout(self.width, self.planes, flags).replicate(g.tile_bits // g.lanes)

    def _output(self, tiles: list[Value]) -> Value:
        g = self._geometry
        options = []
        for w in self._layouts():
            symbols, planes = g.beat_bits // w, g.planes(w)
            options.append(
                Cat(
                    tiles[beat][k * symbols + i]
                    for k in range(planes)
                    for beat in range(g.beats_per_block)
                    for i in range(symbols)
                )
            )
        result = self._by_layout(self.read_width, self.read_planes, options)
        planes = g.planes(g.lane_bits)
        order = Cat(
            tiles[p // planes][p % planes * g.lanes + i]
            for i in range(g.lanes)
            for p in range(g.lane_bits - 1, -1, -1)
        )
        return Mux(self.read_planes, result, order)

    def _by_layout(self, width: Value, planes: Value, options: list[Value]) -> Value:
        result = options[0]
        for index, option in enumerate(options[1:], start=1):
            result = Mux(planes & (width == index), option, result)
        return result
