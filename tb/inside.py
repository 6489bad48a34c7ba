"""Run a Verilator simulation inside this Python process.

Cocotb embeds Python into the simulation, which needs the shared libpython; Debian's
python3 comes without it, but its executable exports the same symbols. So the simulation
is a shared library, and Python loads it:  python inside.py LIBRARY [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import sys


def main() -> None:
    """Does not return: the process ends with the simulation's exit code."""
    library = ctypes.PyDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # cocotb expects the GIL
    arguments = [argument.encode() for argument in sys.argv[1:]]
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    library.planezip_run(len(arguments), argv)


if __name__ == "__main__":
    main()
