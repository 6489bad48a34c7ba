"""Trace files: versioned JSON, compressed with gzip (``schemas/trace.json``).

The same trace gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from dataclasses import asdict, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from planezip.sim.trace import LIMIT, Kind, Op, Phase, Storage, Trace, TraceError

__all__ = ["load_trace", "save_trace", "trace_from_json"]

TRACE_VERSION = 1
_FILE_LIMIT_BYTES = 1 << 30  # of JSON, uncompressed


def save_trace(trace: Trace, path: Path | str) -> None:
    """Write ``trace`` to ``path``; equal traces give equal files."""
    text = json.dumps(
        {"format": "planezip-trace", "version": TRACE_VERSION, **asdict(trace)},
        separators=(",", ":"),
    )
    Path(path).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def load_trace(path: Path | str) -> Trace:
    """Read a trace.

    Raises
    ------
    TraceError
        If the file cannot be read, is not a trace, or contradicts itself.
    """
    try:
        raw = Path(path).read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(raw)) as stream:
                raw = stream.read(_FILE_LIMIT_BYTES + 1)
            if len(raw) > _FILE_LIMIT_BYTES:
                raise ValueError(f"more than {_FILE_LIMIT_BYTES} bytes of JSON")
        data = json.loads(raw)
    except (OSError, EOFError, ValueError, zlib.error, RecursionError) as error:
        raise TraceError(
            f"{path}: cannot be read as a trace ({error}); write one with `planezip trace`"
        ) from error
    try:
        return trace_from_json(data)
    except TraceError as error:
        raise TraceError(f"{path}: {error}; write it anew with `planezip trace`") from error


def trace_from_json(data: object) -> Trace:
    """Trace from decoded JSON (``schemas/trace.json``)."""
    if not isinstance(data, dict) or data.get("format") != "planezip-trace":
        raise TraceError("not a PlaneZip trace")
    if data.get("version") != TRACE_VERSION:
        raise TraceError(f"version must be {TRACE_VERSION}, not {data.get('version')!r}")
    values = {k: v for k, v in data.items() if k not in ("format", "version")}
    for name, record in (("ops", Op), ("storages", Storage)):
        rows = values.get(name)
        if not isinstance(rows, list):
            raise TraceError(f"{name} must be a list, not {type(rows).__name__}")
        values[name] = tuple(_record(record, row, f"{name}[{i}]") for i, row in enumerate(rows))
    trace: Trace = _record(Trace, values, "trace")
    return trace


def _record(record: Any, row: object, where: str) -> Any:
    """Instance of dataclass ``record`` from a JSON object, each field checked."""
    if not isinstance(row, dict):
        raise TraceError(f"{where} must be an object, not {type(row).__name__}")
    known = {f.name: f for f in fields(record)}
    if unknown := sorted(set(row) - set(known)):
        raise TraceError(f"{where} has an unknown field {unknown[0]!r}")
    try:
        values = {
            name: _FIELD[str(known[name].type)](value, f"{where}.{name}")
            for name, value in row.items()
        }
        return record(**values)
    except TypeError as error:
        missing = [n for n in known if n not in row]
        raise TraceError(f"{where} lacks one of the fields {missing}") from error


def _integer(value: object, where: str) -> int:
    if type(value) is not int or not -1 <= value < LIMIT:
        raise TraceError(f"{where} must be an integer of at least -1, not {value!r:.40}")
    return value


def _indices(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise TraceError(f"{where} must be a list of integers, not {value!r:.40}")
    return tuple(_integer(v, where) for v in value)


def _of_type(kind: Any) -> Any:
    def convert(value: object, where: str) -> Any:
        if not isinstance(value, kind):
            raise TraceError(f"{where} must be {kind.__name__}, not {value!r:.40}")
        return value

    return convert


def _one_of(enum: type[StrEnum]) -> Any:
    def convert(value: object, where: str) -> StrEnum:
        try:
            return enum(str(value))
        except ValueError:
            raise TraceError(f"{where} must be one of {list(enum)}, not {value!r:.40}") from None

    return convert


_FIELD: dict[str, Any] = {
    "int": _integer,
    "int | None": lambda value, where: None if value is None else _integer(value, where),
    "str": _of_type(str),
    "bool": _of_type(bool),
    "tuple[int, ...]": _indices,
    "tuple[Op, ...]": _of_type(tuple),
    "tuple[Storage, ...]": _of_type(tuple),
    "Mapping[str, Any]": _of_type(dict),
    "Phase": _one_of(Phase),
    "Kind": _one_of(Kind),
}
