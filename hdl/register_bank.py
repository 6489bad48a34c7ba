"""Registers of one direction of the engine (hdl/registers.py, BANK_REGISTERS)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from planezip.hdl.engine_types import Activity, completion, engine_descriptor
from planezip.hdl.registers import BANK_REGISTERS
from planezip.model.format import Parameters, Tag

__all__ = ["OFFSET_BITS", "RegisterBank"]

OFFSET_BITS = 8
_WORD = 32


class RegisterBank(wiring.Component):
    """A descriptor is put together and submitted; the completion that waits is shown.

    Parameters
    ----------
    parameters : Parameters

    Attributes
    ----------
    offset : In, write : In(1), write_data : In(32)
        Write a register; ``write_ok`` in the same cycle if that is possible.
    write_ok : Out(1)
    read_offset : In, read_data : Out(32), read_ok : Out(1)
        Combinational; ``read_ok`` if there is a register to be read.
    descriptor : Out(stream of :func:`planezip.hdl.engine_types.engine_descriptor`)
    completion : In(stream of :func:`planezip.hdl.engine_types.completion`)
        Taken with a write to POP.
    raw_activity, wire_activity : In(:class:`planezip.hdl.engine_types.Activity`)
        A counter has a cycle two cycles later.
    """

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(
            {
                "offset": In(OFFSET_BITS),
                "write": In(1),
                "write_data": In(_WORD),
                "write_ok": Out(1),
                "read_offset": In(OFFSET_BITS),
                "read_data": Out(_WORD),
                "read_ok": Out(1),
                "descriptor": Out(stream.Signature(engine_descriptor())),
                "completion": In(stream.Signature(completion(parameters))),
                "raw_activity": In(Activity),
                "wire_activity": In(Activity),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        data, new = self.write_data, self.descriptor
        waits, done = self.completion.valid, Signal(self.completion.payload.shape())
        with m.If(waits):
            m.d.comb += done.eq(self.completion.payload)
        free = ~new.valid | new.ready
        strobes = {r.name: Signal(name=r.name.lower()) for r in BANK_REGISTERS if r.access != "RO"}
        with m.Switch(self.offset):
            for register in BANK_REGISTERS:
                if register.access != "RO":
                    with m.Case(register.offset):
                        ok = free if register.name == "SUBMIT" else Const(1)
                        m.d.comb += [
                            strobes[register.name].eq(self.write),
                            self.write_ok.eq(ok),
                        ]
        lengths = {
            name: Signal(2 * _WORD, name=name.lower()) for name in ("RAW_BYTES", "WIRE_BYTES")
        }
        for name, length in lengths.items():
            for k, half in enumerate(("LO", "HI")):
                with m.If(strobes[f"{name}_{half}"]):
                    m.d.sync += length.word_select(k, _WORD).eq(data)
        with m.If(free):
            m.d.sync += new.valid.eq(strobes["SUBMIT"])
            with m.If(strobes["SUBMIT"]):
                m.d.sync += [
                    new.payload.raw_bytes.eq(lengths["RAW_BYTES"]),
                    new.payload.wire_bytes.eq(lengths["WIRE_BYTES"]),
                    Value.cast(new.payload.mode).eq(data[0:2]),
                    Value.cast(new.payload.dtype).eq(data[4:8]),
                    new.payload.tag.eq(data[16:32]),
                ]
        sticky = Signal(3)
        told = Signal()
        m.d.comb += [told.eq(waits & strobes["POP"]), self.completion.ready.eq(strobes["POP"])]
        fault = done.error != 0
        seen = Cat(strobes["SUBMIT"] & ~free, told & fault, told & done.framing)
        cleared = data[8:11] & strobes["CLEAR"].replicate(3)
        m.d.sync += sticky.eq((sticky & ~cleared) | seen)
        completed, errors = Signal(_WORD), Signal(_WORD)
        m.d.sync += [completed.eq(completed + told), errors.eq(errors + (told & fault))]

        values: dict[str, Value] = {
            "STATUS": Cat(free, waits, Const(0, 6), sticky),
            "DONE": Cat(
                done.tag,
                done.error,
                done.framing,
                Const(0, 10),
                waits,
            ),
            "DONE_BLOCK": Value.cast(done.block),
            "DONE_CHUNK": done.chunk,
            "COMPLETED": completed,
            "ERRORS": errors,
        }
        wide = {
            **lengths,
            **{f"DONE_{n.upper()}": done[n] for n in ("raw_bytes", "wire_bytes", "cycles")},
            **{f"DONE_{tag.name}": done.blocks[tag.value] for tag in Tag},
        }
        for name, value in wide.items():
            values[f"{name}_LO"], values[f"{name}_HI"] = value[:_WORD], value[_WORD:]
        for side in ("raw", "wire"):
            activity = Signal(Activity, init=Activity.IDLE, name=f"{side}_before")
            m.d.sync += activity.eq(getattr(self, f"{side}_activity"))
            for kind in Activity:
                name = f"{side.upper()}_{kind.name}"
                values[name] = Signal(_WORD, name=name.lower())
                m.d.sync += values[name].eq(values[name] + (activity == kind))
        with m.Switch(self.read_offset):
            for register in BANK_REGISTERS:
                if register.access != "WO":
                    with m.Case(register.offset):
                        m.d.comb += [
                            self.read_data.eq(values[register.name]),
                            self.read_ok.eq(1),
                        ]
        return m
