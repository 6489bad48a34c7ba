"""Platform files, cost model of operators and transfers, engine rate from reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planezip.sim.engine_rate import read_reports, rtl_rate_bytes_per_s
from planezip.sim.platform import PlatformError, load_platform, op_time_ns, platform_names
from planezip.sim.trace import Op, Phase

GOOD = """
name = "mine"
float_bytes = 2
peak_flops_per_s = 1e12
math_percent = 50
memory_bytes_per_s = 1_000_000_000
memory_percent = 100
link_bytes_per_s = 2e9
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_the_paper_s_platforms() -> None:
    assert platform_names() == ["A", "B", "Grace", "H100"]
    a, b = load_platform("A"), load_platform("B")
    assert (a.float_bytes, a.link_bytes_per_s, a.engine.bytes_per_s) == (4, 12 * 10**9, 64 * 10**9)
    assert (b.float_bytes, b.link_bytes_per_s, b.setup_ns, b.launch_ns) == (
        2,
        24 * 10**9,
        5000,
        4000,
    )


def test_operator_time_by_hand(tmp_path: Path) -> None:
    p = load_platform(write(tmp_path, GOOD))

    def time(flops: int = 0, elements: int = 0, other: int = 0, **more: object) -> int:
        return op_time_ns(Op("op", Phase.FORWARD, flops, elements, other, **more), p)  # type: ignore[arg-type]

    assert time() == 4000
    assert time(flops=1_000_001) == 4000 + 2001  # 0.5e12 a second, rounded up
    assert time(elements=100, other=7) == 4000 + 207  # 2 bytes an element
    assert time(flops=1_000_000, elements=5000) == 4000 + 10_000  # the larger of the two
    assert time(elements=100, view=True) == 0
    assert time(elements=100, time_ns=5) == 5


def test_transfer_time_by_hand(tmp_path: Path) -> None:
    p = load_platform(write(tmp_path, GOOD + "link_sharers = 2\n[engine]\nbytes_per_s = 4e9"))
    assert p.transfer_ns(1000, 1000) == 1000  # 1 byte per ns each
    assert p.transfer_ns(1000, 500) == 500
    assert p.transfer_ns(1000, 100) == 250  # engine bound
    assert p.transfer_ns(1001, 3) == 251
    assert p.bypasses(1000, 1000)
    assert not p.bypasses(1000, 999)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name = ", "Invalid"),
        (GOOD + "speed = 3", "unknown key 'speed'"),
        (GOOD.replace('"mine"', "3"), "name must be str"),
        (GOOD.replace("= 2\n", "= 3\n", 1), "float_bytes must be 0, 2, 4 or 8"),
        (GOOD.replace("2e9", "0"), "link_bytes_per_s must be positive"),
        (GOOD.replace("2e9", "1.5"), "link_bytes_per_s must be int"),
        (GOOD.replace("2e9", "true"), "link_bytes_per_s must be int"),
        (GOOD.replace("2e9", "inf"), "link_bytes_per_s must be int"),
        (GOOD.replace("link_bytes_per_s = 2e9", ""), "lacks link_bytes_per_s"),
        (GOOD + "setup_ns = -1", "setup_ns must not be negative"),
        (GOOD + '[engine]\nsource = "guess"', 'must be "fixed" or "rtl"'),
        (GOOD + "[engine]\nbytes_per_s = -1", "must not be negative"),
        (GOOD + "[engine]\nlanes = 2", "unknown key 'lanes'"),
        (GOOD + '[engine]\nsource = "rtl"\nlanes = 0', "lanes must be a positive integer"),
        (GOOD + "engine = 3", "engine must be a table"),
    ],
)
def test_bad_platform_gives_one_error(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(PlatformError, match=error):
        load_platform(write(tmp_path, text))


def test_unknown_platform() -> None:
    with pytest.raises(PlatformError, match="give one of A, B"):
        load_platform("C")
    with pytest.raises(PlatformError, match="start from a copy"):
        load_platform("absent.toml")


def reports(folder: Path) -> Path:
    for part, data in {
        "sim": {
            "runs": [
                {"component": "compressor", "stalls": "none", "blocks": 1000, "cycles": 4000},
                {"component": "compressor", "stalls": "none", "blocks": 1000, "cycles": 4100},
                {"component": "compressor", "stalls": "half/none", "blocks": 10, "cycles": 80},
                {"component": "decompressor", "stalls": "none", "blocks": 100, "cycles": 400},
                {"component": "transpose", "stalls": "none", "blocks": 10, "cycles": 990},
            ]
        },
        "synth": {
            "modules": [
                {"name": "compressor", "library": "l", "corner": "tt", "clock_ghz": 2.0},
                {"name": "decompressor", "library": "l", "corner": "tt", "clock_ghz": 1.9},
                {"name": "decompressor", "library": "l", "corner": "tt", "clock_ghz": 1.6},
                {"name": "compressor", "library": "other", "corner": "tt", "clock_ghz": 9},
            ]
        },
    }.items():
        (folder / part).mkdir(parents=True)
        (folder / part / "report.json").write_text(json.dumps(data))
    return folder


def test_engine_rate_from_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = read_reports(reports(tmp_path / "build"))
    assert figures["millicycles_per_block"] == {"compressor": 4100, "decompressor": 4000}
    # two lanes of 128 B in 4.1 cycles at 1.6 GHz
    rate = 2 * 128 * 1_600_000_000_000 // 4100
    assert rtl_rate_bytes_per_s(figures, "l", "tt", 2) == rate
    with pytest.raises(ValueError, match="they have: 'l' 'tt', 'other' 'tt'"):
        rtl_rate_bytes_per_s(figures, "other", "tt", 2)
    monkeypatch.chdir(tmp_path)
    text = GOOD + '[engine]\nsource = "rtl"\nlibrary = "l"\ncorner = "tt"\nlanes = 2'
    engine = load_platform(write(tmp_path, text)).engine
    assert (engine.bytes_per_s, engine.source) == (rate, "RTL (build), l tt, 2 lanes")


def test_report_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run make sim and make synth"):
        read_reports(tmp_path)
    build = reports(tmp_path)
    (build / "synth" / "report.json").write_text('{"modules": [{"name": "compressor"}]}')
    with pytest.raises(ValueError, match="KeyError 'library'"):
        read_reports(build)


def test_engine_rate_from_the_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # nothing was built here
    text = GOOD + '[engine]\nsource = "rtl"\nlibrary = "none"\ncorner = "none"'
    with pytest.raises(PlatformError, match="no figures of both lanes for library 'none'"):
        load_platform(write(tmp_path, text))
