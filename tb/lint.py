"""`verilator --lint-only -Wall` on the exported Verilog; lint.vlt has the exceptions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from planezip.hdl.export import write
from tb import verilator
from tb.places import ROOT

__all__ = ["main"]


def main() -> int:
    """0 if Verilator has nothing to say about any exported file."""
    worst = 0
    for path in write(ROOT / "build" / "verilog"):
        command = [verilator.executable(), "--lint-only", "-Wall", "--top-module", path.stem]
        library = ["-y", str(path.parent)]  # of the modules that it has instances of
        sources = [str(Path(__file__).with_name("lint.vlt")), *library, str(path)]
        result = subprocess.run([*command, *sources], check=False, env=verilator.environment())
        print(f"{path.relative_to(ROOT)}: {'clean' if not result.returncode else 'see above'}")
        worst = max(worst, result.returncode)
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
