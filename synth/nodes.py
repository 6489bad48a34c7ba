"""Constants of a library's node: clock, SRAM and wires, with where they come from.

SRAM: the memories are read and written in the same cycle, so the cell is that of an 8T register
file. Its area per bit is that of a 6T cell times 1.3, over a cell efficiency of one half
(decoders, sense amplifiers, column circuits of macros this small); both factors are our
estimates. SKY130's is a published macro. SRAM delays are our estimates too: three eighths of the
clock to the output and a thirteenth of it for the set-up.

Wires: at 45 nm the table "5K_hvratio_1_1" of Nangate45 has 0.177 fF and 3.6 ohm per um; the
others are our estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

from planezip.synth.flow import Constraint
from planezip.synth.library import Library
from planezip.synth.timing import Wire

__all__ = ["Node", "node_of"]

_OVERHEAD = 1.3 / 0.5  # of an 8T macro, over the area of its bits as 6T cells


@dataclass(frozen=True)
class Node:
    """Constants of a process node.

    Attributes
    ----------
    nm : int
    period_ps : float
        Clock at which its modules are mapped and timed.
    sram_um2_per_bit : float
        Of a small macro with one read and one write port, with all that belongs to it.
    sram_source : str
    sram_out_ps, sram_set_up_ps : float
        Clock to output, and set-up of the inputs.
    wire : Wire
    """

    nm: int
    period_ps: float
    sram_um2_per_bit: float
    sram_source: str
    sram_out_ps: float
    sram_set_up_ps: float
    wire: Wire

    def constraint(self, period_ps: float | None = None) -> Constraint:
        """Clock and ports; SRAM constants do not change with the clock."""
        return Constraint(
            period_ps or self.period_ps,
            sram_out_ps=self.sram_out_ps,
            sram_set_up_ps=self.sram_set_up_ps,
        )


_7 = Node(
    7,
    667.0,
    round(0.027 * _OVERHEAD, 3),
    "6T cell of 0.027 um2 (Chang et al., ISSCC 2017, 12.1), times 1.3 and 2 (our estimates)",
    250.0,
    50.0,
    Wire(0.2, 25.0),
)
_45 = Node(
    45,
    1500.0,
    round(0.346 * _OVERHEAD, 2),
    "6T cell of 0.346 um2 (Mistry et al., IEDM 2007), times 1.3 and 2 (our estimates)",
    560.0,
    110.0,
    Wire(0.2, 3.6),
)
_130 = Node(
    130,
    4000.0,
    17.4,
    "macro sky130_sram_2kbyte_1rw1r_32x512_8 of OpenRAM: 683.1 um x 416.5 um for 16,384 bits",
    1500.0,
    300.0,
    Wire(0.2, 0.4),
)
_NODES = {"asap7sc7p5t": _7, "sky130_fd_sc_hd": _130}


def node_of(library: Library) -> Node:
    """Constants for a library; one that is not known counts as 45 nm."""
    return _NODES.get(library.name, _45)
