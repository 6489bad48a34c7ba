"""FPGA report: counts of a small design, on every family."""

from __future__ import annotations

import pytest

from planezip.hdl.export import MODULES
from planezip.synth import fpga

INNER = "module inner(clk, y);\n  input clk;\n  output y;\n  reg y = 0;\nendmodule\n"
TOP = """
module top(input clk, input [9:0] a, input [17:0] d, output reg [17:0] q, output y,
           output reg [7:0] n);
  reg [17:0] memory[0:1023];
  always @(posedge clk) begin
    memory[a] <= d;
    q <= memory[a + 10'd1];
    n <= n + {a[0] & d[1], 1'b1};
  end
  inner inner (.clk(clk), .y(y));
endmodule
"""


@pytest.mark.parametrize("family", sorted(fpga.FAMILIES))
def test_counts(family: str) -> None:
    """Eight flip-flops of a counter, one RAM of 18 kbit, and not what is in the other module."""
    found = fpga.mapped(TOP, "top", family, {"inner": INNER})
    assert found["ff"] == 8
    assert found["bram_18k"] == 1
    assert found["lut"] > 0


def test_yosys_message() -> None:
    """A text that yosys cannot read is an error with what yosys was doing."""
    with pytest.raises(RuntimeError, match="yosys failed:"):
        fpga.mapped("module top(", "top", "xcup")


def test_unknown_module(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fpga.main(["planezip_dma"])
    assert "MODULE must be one of planezip_compressor" in capsys.readouterr().err


def test_whole_engine() -> None:
    """Two lanes of each kind and what is around them; nothing where a part was not counted."""
    rows = {name: dict.fromkeys(fpga.count({}), 10**k) for k, name in enumerate(MODULES)}
    found = fpga.wholes(rows, 2)
    assert set(found["planezip_engine"].values()) == {2 + 20 + 100}
    assert set(found["planezip_axi"].values()) == {2 + 20 + 100 + 1000}
    del rows["planezip_decompressor"]
    assert fpga.wholes(rows, 2) == {}
