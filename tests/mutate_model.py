"""Mutants of the golden model: `python -m tests.mutate_model [mutants [seed [module ...]]]`.

Cosmic Ray makes them (`pip install cosmic-ray`), with all its operators but those that
change nothing here: the removal of decorators (numba.njit), `is` for comparisons of numbers.
A sample of equal share of each module is run against the tests named below, numba's kernels
as plain Python, in a process of its own with 60 seconds of processor time. Writes
build/mutate/model.json; with modules named, the rows of the others stay as they are.
"""

from __future__ import annotations

import ast
import importlib.machinery
import json
import os
import random
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before numba is imported

import hypothesis
import numba
import numpy
import pytest
from cosmic_ray import plugins
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "build" / "mutate" / "model.json"
VECTORS = "tests/test_vectors.py"
SECONDS = 60
LEAST = 0.95  # of the mutants that are not equivalent
# Module: selection, files. The last two run compiled kernels.
TESTS = {
    "format": ("test_format or test_reference", ["tests/test_format.py", VECTORS]),
    "reference": ("test_reference_decoder", [VECTORS]),
    "reference_encoder": ("test_reference_encoder", [VECTORS]),
    "parse": ("test_decoder[", [VECTORS]),
    "decoder": ("test_decoder[ or test_walk", [VECTORS, "tests/test_codec_api.py"]),
    "bits": ("test_decoder[ or test_encoder", [VECTORS]),
    "choose": ("test_encoder", [VECTORS]),
    "encoder": ("test_encoder", [VECTORS]),
    "size_model": ("test_size_model", [VECTORS]),
    "measure": ("test_codec or test_size_model", ["tests/test_codec_api.py", VECTORS]),
    "codec": (
        "test_codec or test_decoder[ or test_encoder",
        ["tests/test_codec_api.py", "tests/test_codec_errors.py", VECTORS],
    ),
}
COMPILED = ("measure", "codec")
# Survivors that no test can kill: why, modules, pattern of the line.
EQUIVALENT = (
    (
        "k is below LANES, a power of two; rows are multiples",
        "bits choose decoder encoder parse size_model",
        r".*\[.*\b_?[A-Z_]+ [|^] [bk]\]",
    ),
    ("only w bits of a symbol are kept", "reference", r"symbols.append\(.*1 >> w\) - 1"),
    (
        "odd bits are a verbatim plane, read without the table",
        "parse",
        r"for bits in range\( 31\):",
    ),
    ("bit 0 is 0", "parse", r"code, length = .*window & U\( 30\)"),
    ("its callers name what is behind the mark", "format", r"def _.*, /, "),
    ("the least is 2", "format", r".*value & \(value - 2\):"),
    (
        "widths are even",
        "format reference_encoder",
        r".*Tag.DBX: w \^ 1,|mask = \(1 << \(w \| 1\)\) - 1",
    ),
    ("no count is above 64", "size_model", r"for k in range\( 7\):"),
    (
        "no bit is in both",
        "encoder codec",
        r".*U\(_FIVE \| _PAIR\) \+ placed|.*\(HEADER_BYTES \| CHUNK_BYTES\)",
    ),
    ("no plane is one and pair", "encoder", r".*~\(one \^ pair\)"),
    ("no tag is above ZBX", "encoder choose decoder", r".*tag >= U\(_ZBX\)"),
    ("with one thread the part is there already", "codec", r"if threads >= 1:"),
    ("no remainder is negative", "decoder", r"if chunk % every <= 0:"),
    ("pre is not negative", "reference_encoder", r"if pre <= 0:"),
    ("position comes to it in the end", "reference_encoder", r"while k != len\(planes\)"),
    (
        "the lowest one tells the length of both",
        "reference_encoder",
        r"position = \(planes\[k\] \| -planes",
    ),
    (
        "the buffer is only longer",
        "decoder encoder",
        r"body = np.zeros\(BLOCKS_PER_CHUNK \* _WORDS .*[2-9] \* MARGIN (\^|\+) [2-9]"
        r"|planes = np.zeros\( 3[4-9] \* LANES",
    ),
    ("no bit is in both", "decoder", r"size = .* \^ \(np.int64"),
    ("no bit is in both", "bits", r"x = .*0x3{16}\)\) \+ \(\(x & U\(0x3{16}\)\) <<"),
    ("keys are large", "decoder encoder choose", r"return _.* if key >= (1 else|0 else \( -1)"),
    ("without a fault nothing more is read", "decoder", r"return 0, .*0$"),
)


class _Plain(ast.NodeTransformer):
    """Takes out what no run depends on: annotations."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(0)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        self.generic_visit(node)
        return node


def meaning(source: str) -> str:
    """Equal for sources that differ in annotations only; empty if it is not Python."""
    try:  # Cosmic Ray takes the "/" of positional arguments for a division
        return ast.dump(_Plain().visit(ast.parse(source)))
    except SyntaxError:
        return ""


def candidates(module: str) -> list[tuple[str, int, int]]:
    """Operator, occurrence and line of every mutant of a module."""
    skipped = ("RemoveDecorator", "_Is", "_IsNot")
    skipped += ("VariableReplacer", "VariableInserter", "ExceptionReplacer")  # need arguments
    with use_db(":memory:", WorkDB.Mode.create) as db:
        init([ROOT / "model" / f"{module}.py"], db, {})
        mutations = [item.mutations[0] for item in db.work_items]
    kept = [m for m in mutations if not m.operator_name.endswith(skipped)]
    return sorted((m.operator_name, m.occurrence, m.start_pos[0]) for m in kept)


def survives(module: str, source: str) -> bool:
    """Whether the tests of ``module`` pass with ``source`` in its place."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return status == 0
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        numba.config.DISABLE_JIT = module not in COMPILED
        path = str(ROOT / "model" / f"{module}.py")
        load = importlib.machinery.SourceFileLoader.get_code

        def get_code(self: Any, name: str) -> Any:
            same = os.path.realpath(self.path) == path
            return compile(source, path, "exec") if same else load(self, name)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        selection, files = TESTS[module]
        chosen = ["-k", selection] if selection else []
        options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore", *chosen]
        code = int(pytest.main([*options, *files]))
    finally:
        os._exit(code)


def excuse(module: str, line: str) -> str | None:
    """Why a mutant with this line is none; None if it is one."""
    known = (
        why for why, names, text in EQUIVALENT if module in names.split() and re.match(text, line)
    )
    return next(known, None)


def run(module: str, count: int, rng: random.Random) -> dict[str, Any]:
    """Row of the report on up to ``count`` mutants of a module."""
    source = (ROOT / "model" / f"{module}.py").read_text()
    if not survives(module, source):
        raise SystemExit(f"the tests of {module} fail without a mutant")
    every = candidates(module)
    rng.shuffle(every)
    seen: Counter[str] = Counter()
    survivors = []
    for operator, occurrence, line in every:
        if seen["mutants"] == count:
            break
        mutant = mutate_code(source, plugins.get_operator(operator)(), occurrence)
        if meaning(mutant) in (meaning(source), ""):
            continue
        seen["mutants"] += 1
        if not survives(module, mutant):
            seen["killed"] += 1
            continue
        pairs = zip(source.splitlines(), mutant.splitlines(), strict=True)
        new = next(b.strip() for a, b in pairs if a != b)
        note = excuse(module, new)
        seen["equivalent"] += note is not None
        survivors.append({"line": line, "operator": operator, "mutant": new, "equivalent": note})
        print(f"{module}.py:{line}: {new}", flush=True)
    counts = {key: seen[key] for key in ("mutants", "killed", "equivalent")}
    return {"name": module, "candidates": len(every), **counts, "survivors": survivors}


def main() -> int:
    """0 if enough are killed, 1 if not."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 440
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    modules = sys.argv[3:] or list(TESTS)
    os.chdir(ROOT)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(FILE.read_text())["designs"] if sys.argv[3:] and FILE.exists() else []
    rows = {row["name"]: row for row in kept}
    versions = {m.__name__: m.__version__ for m in (numba, numpy, pytest, hypothesis)}
    for module in modules:
        start = time.monotonic()
        row = rows[module] = run(module, count // len(TESTS), random.Random(f"{seed} {module}"))
        spent = time.monotonic() - start
        print(f"{module}: {row['killed']} of {row['mutants']} killed, {spent:.0f} s", flush=True)
        report = {"version": 1, "versions": versions, "designs": list(rows.values())}
        FILE.write_text(json.dumps(report, indent=1) + "\n")
    total, killed, same = (
        sum(row[key] for row in rows.values()) for key in ("mutants", "killed", "equivalent")
    )
    good = killed >= LEAST * (total - same)
    print(f"{killed} of {total} killed, {same} equivalent; written: {FILE.relative_to(ROOT)}")
    print("PASSED" if good else f"FAILED, less than {LEAST:.0%} of the others")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
