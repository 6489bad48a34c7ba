"""Activity of a lane's registers and ports, from a simulation of its RTL by Icarus Verilog.

A tensor of bfloat16 values, a ReLU's output (half of them zero, the others half-normal), goes
through the lane at full rate; transitions are counted over :data:`CYCLES` cycles in its
middle. OpenSTA 2.0 propagates those of the ports through logic and registers; those of a register
count for itself and its net, not for the logic behind it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from planezip.hdl import verilog
from planezip.hdl.types import ElementType, Mode, beat, descriptor
from planezip.model import codec
from planezip.model.format import DEFAULT, Parameters
from planezip.synth.library import SynthError

__all__ = ["CYCLES", "METHOD", "count_transitions", "icarus", "kept_activities"]
__all__ += ["lane_activities"]

CYCLES = 512
_SKIPPED = 384  # until the pipeline is full
_CHUNKS = 12
_PERIOD = 10  # of the simulation's clock
METHOD = (
    "OpenSTA report_power at the row's clock; no wires, no clock tree, no SRAM; transitions from"
    f" Icarus Verilog on the RTL, {CYCLES} cycles of ReLU outputs in bfloat16: OpenSTA propagates"
    " those of the ports, those of registers count for their own nets"
)


def icarus() -> str | None:
    """The command of Icarus Verilog, or None where it is not installed."""
    return shutil.which("iverilog")


@functools.cache
def icarus_version() -> str:
    """First line of what Icarus Verilog says of itself."""
    done = subprocess.run([_command(), "-V"], check=False, capture_output=True, text=True)
    return done.stdout.partition("\n")[0]


def _command() -> str:
    command = icarus()
    if command is None:
        raise SynthError("Icarus Verilog is not installed: apt install iverilog")
    return command


_LOCK = threading.Lock()


def kept_activities(
    make: Callable[[Parameters], Any], name: str, text: str, folder: Path
) -> dict[str, tuple[float, float]]:
    """:func:`lane_activities`, kept in ``folder``/cache as long as the RTL ``text`` is the same."""
    sources = [Path(module.__file__ or "").read_text() for module in (verilog, codec)]
    versions = [metadata.version(tool) for tool in ("numpy", "ml_dtypes", "pyosys")]
    parts = [name, text, Path(__file__).read_text(), *sources, *versions, icarus_version()]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    path = folder / "cache" / f"{name}-{key[:32]}.activity.json"
    with _LOCK:
        if not path.exists():
            found = lane_activities(make(DEFAULT), name, folder / "work")
            path.parent.mkdir(parents=True, exist_ok=True)
            scratch = path.with_suffix(".tmp")
            scratch.write_text(json.dumps(found))
            scratch.replace(path)
        return {pin: (rate, ones) for pin, (rate, ones) in json.loads(path.read_text()).items()}


def lane_activities(component: Any, name: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Transitions per cycle and share of ones, by register bit or port.

    Raises
    ------
    SynthError
        If Icarus Verilog is missing or fails, or the lane stood still.
    """
    command = _command()
    folder.mkdir(parents=True, exist_ok=True)
    text = verilog.verilog(component, name, flatten=True)
    size = _CHUNKS * 4096
    rng = np.random.default_rng(1)
    values = np.maximum(rng.standard_normal(size // 2, dtype=np.float32), 0)
    raw = values.astype(ml_dtypes.bfloat16).tobytes()
    head = _bits(descriptor(), dtype=ElementType.BFLOAT16, raw_bytes=size, mode=Mode.STREAM, tag=0)
    if name == "compressor":
        port, width = "raw", 256
        words = [int.from_bytes(raw[k : k + 32], "little") for k in range(0, size, 32)]
    else:
        wire, layout = codec.encode_bytes(raw, 16), beat(64)
        port, width = "wire", layout.size
        words = [
            _bits(
                layout,
                data=int.from_bytes(wire[k : k + 64], "little"),
                bytes=len(wire[k : k + 64]),
                last=int(k + 64 >= len(wire)),
            )
            for k in range(0, len(wire), 64)
        ]
    base = folder / f"{name}-activity"
    data, bench, dump = (base.with_suffix(s) for s in (".hex", ".v", ".vcd"))
    data.write_text("".join(f"{word:x}\n" for word in words))
    bench.write_text(text + _bench(text, name, port, width, len(words), head, data, dump))
    program = base.with_suffix(".vvp")
    for call in ([command, "-g2012", "-o", str(program), str(bench)], ["vvp", "-n", str(program)]):
        done = subprocess.run(call, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SynthError(f"{call[0]} failed for {name}: {(done.stderr or done.stdout)[-500:]}")
    with dump.open() as lines:
        activities = count_transitions(lines, CYCLES * _PERIOD, _PERIOD)
    dump.unlink()
    if not any(rate for rate, _ in activities.values()):
        raise SynthError(f"{name} stood still in the simulation of its activity")
    return activities


def _bits(layout: Any, **fields: Any) -> int:
    return int(layout.const(fields).as_value().value)


def _bench(
    text: str, name: str, port: str, width: int, count: int, head: int, data: Path, dump: Path
) -> str:
    """Descriptor and words as fast as the lane takes them; it may always write."""
    registers = re.findall(r"^  reg (?:\[[^]]*\] )?(\\\S+ |\w+)(?: = [^;]*)?;", text, re.M)
    ports = [*re.findall(r"^  (?:input|output) (?:\[[^]]*\] )?(\w+);", text, re.M)]
    dumped = dict.fromkeys([*registers, *(p for p in ports if p != "clk")])
    names = ",\n".join(f"dut.{register}" for register in dumped)
    outputs = {"compressor": ("wire", "report"), "decompressor": ("raw", "report")}[name]
    ready = "".join(f", .{output}__ready(1'b1)" for output in outputs)
    return f"""
module bench;
reg clk = 0, rst = 1, told = 0;
reg [{width - 1}:0] words [0:{count - 1}];
reg [31:0] at = 0;
wire ready, taken;
always #{_PERIOD // 2} clk = ~clk;
{name} dut(.clk(clk), .rst(rst), .descriptor__valid(~told), .descriptor__payload({64}'h{head:x}),
  .descriptor__ready(taken), .{port}__valid(at < {count}), .{port}__payload(words[at]),
  .{port}__ready(ready){ready});
always @(posedge clk) if (!rst) begin
  if (taken) told <= 1;
  if (ready && at < {count}) at <= at + 1;
end
initial begin
  $readmemh("{data}", words);
  #{4 * _PERIOD + 2} rst = 0;
  #{_SKIPPED * _PERIOD};
  $dumpfile("{dump}");
  $dumpvars(0, {names});
  #{CYCLES * _PERIOD} $finish;
end
endmodule
"""


def count_transitions(
    lines: Iterator[str], duration: int, period: int
) -> dict[str, tuple[float, float]]:
    """Transitions per period and share of ones of every bit in a VCD file.

    A bit is called ``name_bit`` as in the netlist, or ``name`` if there is only one; one
    that was unknown all the time is left out.
    """
    codes: dict[str, tuple[str, int]] = {}
    value: dict[str, int] = {}
    since: dict[str, int] = {}
    flips: dict[str, list[int]] = {}
    ones: dict[str, list[int]] = {}
    now, start = 0, None

    def settle(code: str, until: int) -> None:
        bits, spent, k = value[code], until - since[code], 0
        counts = ones[code]
        while bits:
            if bits & 1:
                counts[k] += spent
            bits >>= 1
            k += 1
        since[code] = until

    for line in lines:
        if line.startswith("$var"):
            _, _, size, code, name, *_ = line.split()
            codes.setdefault(code, (name.lstrip("\\"), int(size)))
        elif line.startswith("#"):
            now = int(line[1:])
            start = now if start is None else start
        elif line[0] in "01b":
            text, code = line[1:].split() if line[0] == "b" else (line[0], line[1:].strip())
            if "x" in text or "z" in text or code not in codes:
                continue
            bits = int(text, 2)
            if code not in value:
                flips[code], ones[code] = [0] * codes[code][1], [0] * codes[code][1]
            else:
                settle(code, now)
                changed, k = value[code] ^ bits, 0
                while changed:
                    flips[code][k] += changed & 1
                    changed >>= 1
                    k += 1
            value[code], since[code] = bits, now
    end = (start or 0) + duration
    result: dict[str, tuple[float, float]] = {}
    for code in value:
        settle(code, max(end, since[code]))
        name, bits = codes[code]
        for k in range(bits):
            bit = f"{name}_{k}" if bits > 1 else name
            result[bit] = (flips[code][k] * period / duration, ones[code][k] / duration)
    return result
