# amaranth: UnusedElaboratable=no
"""`make mutate` on small designs: what it makes, kills, proves and writes (docs/proof.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from formal.mutation import __main__ as command
from formal.mutation.combinational import combinational, initial
from formal.mutation.equivalence import Original
from formal.mutation.netlist import SELECT, Mutant, flattened, mutants, mutated
from tb.test_harness import lane

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "formal" / "mutation" / "report.schema.json").read_text()
)


class Redundant(wiring.Component):
    """``a`` in a register, whatever ``b`` is: a | (a & b); and a memory."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "b": In(1), "address": In(3), "out": Out(1), "word": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=4, depth=8, init=[])
        write, read = memory.write_port(), memory.read_port()
        same = Signal()
        m.d.comb += [
            same.eq(self.a & self.b),
            write.en.eq(self.a),
            write.addr.eq(self.address),
            write.data.eq(self.address + 1),
            read.en.eq(1),
            read.addr.eq(self.address),
            self.word.eq(read.data),
        ]
        m.d.sync += self.out.eq(self.a | same)
        return m


class Hidden(wiring.Component):
    """``data`` is seen if valid; ``one`` and ``other`` differ, but in the first cycle."""

    def __init__(self) -> None:
        super().__init__(
            {"v": In(1), "a": In(1), "b": In(1), "out": Out(1), "both": Out(1), "none": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid, data, one, other = Signal(), Signal(), Signal(), Signal()
        with m.If(self.v):
            m.d.sync += data.eq(self.a)
        with m.Else():
            m.d.sync += data.eq(self.b)
        m.d.sync += [valid.eq(self.v), one.eq(self.a), other.eq(~self.a)]
        m.d.comb += [
            self.out.eq(valid & data),
            self.both.eq(one & other),
            self.none.eq(~(one | other)),
        ]
        return m


@pytest.fixture(scope="module")
def netlist() -> str:
    return flattened(Redundant(), "redundant")


def test_mutants(netlist: str) -> None:
    made = mutants(netlist, 30, 1)
    assert [mutant.number for mutant in made] == list(range(1, len(made) + 1))
    assert len({(m.cell, m.port, m.bit, m.mode) for m in made}) == len(made)
    assert {"inv", "const0", "const1"} <= {mutant.mode for mutant in made}
    assert not any(mutant.kind == "$meminit_v2" for mutant in made)
    assert made == mutants(netlist, 30, 1) != mutants(netlist, 30, 2)
    text = mutated(netlist, made)
    assert f"input [15:0] {SELECT};" in text
    assert all(f"16'h{mutant.number:04x}" in text for mutant in made)


def test_what_cannot_be_seen_is_proven(netlist: str) -> None:
    proven = {}
    for mutant in mutants(netlist, 60, 1):
        if mutant.kind in ("$and", "$or") and mutant.mode != "inv":
            proven[mutant.kind, mutant.port, mutant.mode] = Original(netlist, "redundant").equals(
                mutant
            )
    assert proven["$and", "Y", "const0"]
    assert not proven["$or", "Y", "const0"]
    assert not proven["$or", "Y", "const1"]


@pytest.mark.parametrize(
    ("kind", "out", "port", "mode", "same"),
    [
        ("$mux", None, "A", "inv", True),  # heals: what is not valid is not seen
        ("$mux", None, "B", "inv", False),
        ("$and", "both", "Y", "const0", True),  # of states that the cycle before leads to
        ("$and", "both", "Y", "const1", False),
        ("$or", None, "Y", "const1", False),  # seen in the first cycle only
    ],
)
def test_what_heals_is_proven(kind: str, out: str | None, port: str, mode: str, same: bool) -> None:
    hidden = flattened(Hidden(), "hidden")
    (cell,) = (
        found[1]
        for found in re.finditer(
            rf"^  cell {re.escape(kind)} (\S+)\n(?:    .*\n)*", hidden, re.MULTILINE
        )
        if out is None or f"\\{out}\n" in found[0]
    )
    bare = f"mutate -mode {mode} -module hidden -cell {cell} -port {port} -portbit 0"
    mutant = Mutant(1, mode, kind, cell, port, 0, "", bare)
    assert Original(hidden, "hidden").equals(mutant) == same


class First(wiring.Component):
    """Passes its input on in the first cycle only: a register starts at 5."""

    def __init__(self) -> None:
        super().__init__({"input": In(1), "output": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(3, init=5, reset_less=True)
        m.d.sync += first.eq(first >> 1 & 1)
        m.d.comb += self.output.eq(self.input & first[2])
        return m


def test_registers_start_at_their_own_value() -> None:
    text = flattened(First(), "first")
    assert list(initial(text).values()) == [3]  # bits 2 and 0; bit 1 is not there
    cell = next(line.split()[2] for line in text.splitlines() if line.startswith("  cell $and"))
    bare = f"mutate -mode const0 -module first -cell {cell} -port Y -portbit 0"
    assert not Original(text, "first").equals(Mutant(1, "const0", "$and", cell, "Y", 0, "", bare))


class Constant(wiring.Component):
    """Counts by two from 5 on when told so, so that bit 0 stays; passes its input on then."""

    def __init__(self) -> None:
        super().__init__({"input": In(1), "count": In(1), "output": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step, shut = Signal(4, init=5), Signal(2)
        with m.If(self.count):
            m.d.sync += step.eq(step + (1 + ~shut[1]))
            m.d.sync += shut.eq(Cat(self.input, shut[1] & step[2]))
        m.d.comb += self.output.eq(self.input & step[0] & ~shut[1] ^ shut[0])
        return m


def test_constant_bits_of_registers() -> None:
    original = Original(flattened(Constant(), "constant"), "constant")
    assert sorted(original.constants.values()) == [0b0001, 0b10]


def test_mutants_of_constant_bits_are_none() -> None:
    text = flattened(Constant(), "constant")
    original = Original(text, "constant")
    proven = [m.kind for m in mutants(text, 60, 1) if original.equals(m)]
    assert "$and" in proven
    assert len(proven) < 30


@pytest.mark.parametrize("mode", ["const0", "const1", "inv"])
@pytest.mark.parametrize(
    ("kind", "port"),
    [
        ("$sdff", "CLK"),
        ("$sdff", "SRST"),
        ("$memrd_v2", "CLK"),
        ("$memrd_v2", "SRST"),
        ("$memrd_v2", "ARST"),
        ("$memwr_v2", "CLK"),
    ],
)
def test_clocks_and_resets_are_compared(netlist: str, kind: str, port: str, mode: str) -> None:
    found = re.search(rf"^  cell \{kind} (\S+)\n(?:    .*\n)*", netlist, re.MULTILINE)
    assert found
    bare = f"mutate -mode {mode} -module redundant -cell {found[1]} -port {port} -portbit 0"
    mutant = Mutant(1, mode, kind, found[1], port, 0, "", bare)
    value = {"const0": "1'0", "const1": "1'1"}.get(mode)
    same = f"    connect \\{port} {value}\n" in found[0]  # what it is anyway
    assert Original(netlist, "redundant").equals(mutant) == same


@pytest.mark.parametrize("port", ["ADDR", "EN"])
def test_memories_and_registers_are_compared(netlist: str, port: str) -> None:
    """A mutant that only the memory sees is not equivalent."""
    text = combinational(netlist)
    assert "memory" not in text.split("\n  cell")[-1]
    assert not any(kind in text for kind in ("$dff", "$memrd", "$memwr", "$meminit"))
    cell = next(
        line.split()[2] for line in netlist.splitlines() if line.startswith("  cell $memwr_v2")
    )
    bare = f"mutate -mode inv -module redundant -cell {cell} -port {port} -portbit 0"
    mutant = Mutant(1, "inv", "$memwr_v2", cell, port, 0, "", bare)
    assert not Original(netlist, "redundant").equals(mutant)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command on a lane that only repacks words."""
    small = lane()
    monkeypatch.setattr(command, "LANES", (small,))
    report = tmp_path / "report.json"
    code = command.main([small.name, "--mutants", "60", "--report", str(report)])
    document = json.loads(report.read_text())
    jsonschema.validate(document, SCHEMA)
    (row,) = document["designs"]
    assert row["mutants"] == 60
    assert row["killed"] == sum(row["killed_by"].values()) >= 40
    assert row["killed"] + len(row["survivors"]) == 60
    assert {"out: value", "hang"} <= set(row["shown_by"])
    assert code == (0 if row["killed"] >= 0.97 * (60 - row["equivalent"]) else 1)
    assert all(survivor["cell"] for survivor in row["survivors"])
