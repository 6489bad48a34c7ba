"""Platforms (paper Table II) and the cost model of operators and transfers.

A platform is a TOML file: the two of the paper and two newer ones ship in
``platforms/``, others are given by path. All rates are integers per second, all times
integer nanoseconds, rounded up.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from planezip.sim.engine_rate import Engine, engine_rate
from planezip.sim.trace import Op

__all__ = ["Platform", "PlatformError", "load_platform", "op_time_ns", "platform_names"]

_FOLDER = Path(__file__).parent / "platforms"
_SECOND_NS = 1_000_000_000


class PlatformError(ValueError):
    """A platform file is missing or not valid; the text says what helps."""


@dataclass(frozen=True)
class Platform:
    """A GPU, its link to the host and the compression engine on it.

    Parameters
    ----------
    name, description : str
    float_bytes : int
        Bytes of a floating-point element in training; 0 leaves traced types alone.
    peak_flops_per_s, math_percent : int
        Peak math rate and the share of it that operators reach.
    memory_bytes_per_s, memory_percent : int
        Likewise for device memory.
    launch_ns : int
        Overhead of every operator.
    link_bytes_per_s : int
        Host link, per direction.
    link_sharers : int
        GPUs that share the link evenly.
    setup_ns : int
        Setup of every transfer.
    host_chunk_bytes : int
        Size of a chunk of the pinned host pool.
    engine : Engine
        Compression engine, per direction; a rate of 0 is no engine.
    """

    name: str
    float_bytes: int
    peak_flops_per_s: int
    math_percent: int
    memory_bytes_per_s: int
    memory_percent: int
    link_bytes_per_s: int
    description: str = ""
    launch_ns: int = 4_000
    link_sharers: int = 1
    setup_ns: int = 5_000
    host_chunk_bytes: int = 65_536
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        for name in ("float_bytes", "launch_ns", "setup_ns"):
            if getattr(self, name) < 0:
                raise PlatformError(f"{name} must not be negative, not {getattr(self, name)!r}")
        for name in (
            "peak_flops_per_s",
            "math_percent",
            "memory_bytes_per_s",
            "memory_percent",
            "link_bytes_per_s",
            "link_sharers",
            "host_chunk_bytes",
        ):
            if getattr(self, name) < 1:
                raise PlatformError(f"{name} must be positive, not {getattr(self, name)!r}")
        if self.float_bytes not in (0, 2, 4, 8):
            raise PlatformError(f"float_bytes must be 0, 2, 4 or 8, not {self.float_bytes!r}")

    @property
    def link_share_bytes_per_s(self) -> int:
        """Link rate of one of the sharers."""
        return self.link_bytes_per_s // self.link_sharers

    def transfer_ns(self, raw_bytes: int, wire_bytes: int) -> int:
        """Time of a transfer in one queue without setup (Equation 2).

        The smaller of raw over the link, and of compressed over the link with the raw
        bytes through the engine; ``wire_bytes == raw_bytes`` bypasses the engine.
        """
        link = self.link_share_bytes_per_s
        plain = _ceil_ns(raw_bytes, link)
        if wire_bytes >= raw_bytes or not self.engine.bytes_per_s:
            return plain
        engine = _ceil_ns(raw_bytes, self.engine.bytes_per_s)
        return min(plain, max(_ceil_ns(wire_bytes, link), engine))

    def bypasses(self, raw_bytes: int, wire_bytes: int) -> bool:
        """Whether a transfer leaves the engine out because that is as fast."""
        return self.transfer_ns(raw_bytes, wire_bytes) == self.transfer_ns(raw_bytes, raw_bytes)


def op_time_ns(op: Op, platform: Platform) -> int:
    """Launch overhead plus the larger of math and memory time (paper Section IV).

    A view takes none, a recorded time replaces the model.
    """
    if op.time_ns is not None:
        return op.time_ns
    if op.view:
        return 0
    moved = op.float_elements * (platform.float_bytes or 4) + op.other_bytes
    return platform.launch_ns + max(
        _ceil_ns(100 * op.flops, platform.peak_flops_per_s * platform.math_percent),
        _ceil_ns(100 * moved, platform.memory_bytes_per_s * platform.memory_percent),
    )


def platform_names() -> list[str]:
    """Names of the platforms that ship."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_platform(name: str | Path) -> Platform:
    """Platform by name, or from a file whose name ends in ``.toml``.

    Raises
    ------
    PlatformError
        If there is none, or the file is not valid.
    """
    path = Path(name)
    if path.suffix != ".toml":
        path = _FOLDER / f"{name}.toml"
        if str(name) not in platform_names():
            raise PlatformError(
                f"there is no platform {str(name)!r}; give one of {', '.join(platform_names())} "
                "or the path of a .toml file"
            )
    try:
        return _from_table(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError) as error:
        raise PlatformError(
            f"{path.name}: {error}; start from a copy of one of {', '.join(platform_names())}"
        ) from error


def _from_table(table: dict[str, Any]) -> Platform:
    kinds = {f.name: str if f.type == "str" else int for f in fields(Platform)}
    if unknown := sorted(set(table) - set(kinds)):
        raise PlatformError(f"unknown key {unknown[0]!r}")
    values: dict[str, Any] = {}
    for f in fields(Platform):
        if f.name == "engine":
            values["engine"] = engine_rate(table.get("engine", {}))
        elif f.name in table:
            value = table[f.name]
            if isinstance(value, float) and kinds[f.name] is int and value.is_integer():
                value = int(value)
            if type(value) is not kinds[f.name]:
                raise PlatformError(f"{f.name} must be {f.type}, not {value!r:.40}")
            values[f.name] = value
    missing = [
        n
        for n in (
            "name",
            "float_bytes",
            "peak_flops_per_s",
            "math_percent",
            "memory_bytes_per_s",
            "memory_percent",
            "link_bytes_per_s",
        )
        if n not in values
    ]
    if missing:
        raise PlatformError(f"lacks {', '.join(missing)}")
    return Platform(**values)


def _ceil_ns(amount: int, per_s: int) -> int:
    return -(-amount * _SECOND_NS // per_s)
