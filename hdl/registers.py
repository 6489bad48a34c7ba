"""Register map of the AXI wrapper: one table, which the hardware and docs/registers.md use.

``python -m planezip.hdl.registers`` prints docs/registers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planezip.hdl.engine_types import Activity
from planezip.hdl.types import ElementType, Mode
from planezip.model.errors import ErrorCode
from planezip.model.format import Tag

__all__ = ["BANKS", "BANK_REGISTERS", "COMMON", "MAGIC", "MAP_VERSION", "Register", "document"]

MAGIC = 0x505A_4950  # "PZIP"
MAP_VERSION = 1


@dataclass(frozen=True)
class Register:
    """A register of 32 bits: byte offset, name, access ("RO", "RW", "WO"), meaning."""

    offset: int
    name: str
    access: str
    meaning: str


COMMON = (
    Register(0x000, "ID", "RO", "`0x505a4950`"),
    Register(0x004, "VERSION", "RO", "stream format (bits 31:16), register map (15:0): both 1"),
    Register(
        0x008, "CONFIG", "RO", "lanes (7:0), blocks of a chunk (15:8), bytes of a block (31:16)"
    ),
    Register(0x00C, "IRQ_ENABLE", "RW", "bit 0: compressor, bit 1: decompressor"),
    Register(0x010, "IRQ_STATUS", "RO", "the same bits: a completion waits"),
)
"""Registers that both directions share."""

BANKS = {"compress": 0x100, "decompress": 0x200}
"""Base address of each direction."""


def _wide(offset: int, name: str, access: str, meaning: str) -> list[Register]:
    return [
        Register(offset, f"{name}_LO", access, f"{meaning}, bits 31:0"),
        Register(offset + 4, f"{name}_HI", access, "the bits above"),
    ]


def _counters() -> list[Register]:
    found = []
    for k, side in enumerate(("RAW", "WIRE")):
        for kind in Activity:
            found.append(
                Register(
                    0x80 + 0x20 * k + 4 * kind.value,
                    f"{side}_{kind.name}",
                    "RO",
                    f"cycles of the {side.lower()} port in activity {kind.name}, modulo 2^32",
                )
            )
    return found


BANK_REGISTERS = (
    *_wide(0x00, "RAW_BYTES", "RW", "length of the tensor of the next descriptor"),
    *_wide(0x08, "WIRE_BYTES", "RW", "length of its stream (decompressor only)"),
    Register(
        0x10,
        "SUBMIT",
        "WO",
        "queues a descriptor: mode (1:0), element type (7:4), tag (31:16); SLVERR while STATUS"
        " bit 0 is 0",
    ),
    Register(
        0x14,
        "STATUS",
        "RO",
        "bit 0: a descriptor can be queued; bit 1: a completion waits; until cleared: bit 8: a"
        " descriptor was refused, bit 9: a completion had an error, bit 10: one had a framing"
        " fault",
    ),
    Register(0x18, "CLEAR", "WO", "ones clear bits 10:8 of STATUS"),
    Register(0x1C, "POP", "WO", "drops the completion that is shown"),
    Register(
        0x20,
        "DONE",
        "RO",
        "completion: tag (15:0), error (19:16), framing (20), there is one (31); with none all DONE"
        " registers are 0",
    ),
    Register(0x24, "DONE_BLOCK", "RO", "block of the error"),
    Register(0x28, "DONE_CHUNK", "RO", "chunk of the error"),
    *_wide(0x30, "DONE_RAW_BYTES", "RO", "raw bytes"),
    *_wide(0x38, "DONE_WIRE_BYTES", "RO", "bytes of the stream"),
    *_wide(0x40, "DONE_CYCLES", "RO", "cycles from descriptor to last byte"),
    *[
        register
        for tag in Tag
        for register in _wide(0x48 + 8 * tag, f"DONE_{tag.name}", "RO", f"blocks in {tag.name}")
    ],
    *_counters(),
    Register(0xC0, "COMPLETED", "RO", "completions so far, modulo 2^32"),
    Register(0xC4, "ERRORS", "RO", "those of them with an error, modulo 2^32"),
)
"""Registers of each direction, from its base address."""


def _table(registers: Sequence[Register]) -> list[str]:
    lines = ["| offset | name | access | meaning |", "|---|---|---|---|"]
    lines += [f"| `0x{r.offset:03x}` | {r.name} | {r.access} | {r.meaning} |" for r in registers]
    return lines


def document() -> str:
    """Text of docs/registers.md."""
    modes = ", ".join(f"{mode.value} {mode.name}" for mode in Mode)
    types = ", ".join(f"{kind.value} {kind.name}" for kind in ElementType)
    codes = ", ".join(f"{code.value} {code.name}" for code in ErrorCode if code.value < 16)
    activities = ", ".join(kind.name for kind in Activity)
    lines = [
        "# Registers of the AXI wrapper",
        "",
        "<!-- python -m planezip.hdl.registers > docs/registers.md -->",
        "AXI4-Lite, 32-bit words, 12 bits of address. Writes are of whole words. SLVERR answers",
        "any other write, a write to what cannot be written and a refused descriptor, and an",
        "address where there is no register. The table below is `hdl/registers.py`, from which",
        "the hardware is made. Counters of activities have a cycle two cycles later.",
        "",
        *_table(COMMON),
        "",
        "Each direction has the registers below from its base address: "
        + ", ".join(f"`0x{base:03x}` {name}" for name, base in BANKS.items())
        + ".",
        "",
        *_table(BANK_REGISTERS),
        "",
        f"Modes: {modes}. Element types: {types}. Errors: 0 none, {codes}",
        "([format.md](format.md#errors)). Activities:",
        f"{activities} (`hdl/engine_types.py`).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(document(), end="")
