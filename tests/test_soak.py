"""The soak without its simulation: rounds that repeat, state that is kept, faults that end it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formal import soak
from tb.harness.native import Runner


class Dying(Runner):
    """A simulation that ends early in round ``at``; the rounds before are not looked at."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, folder: Path, plusargs: Any) -> None:
        assert (folder / "in.bin").exists()
        self.runs += 1

    def close(self) -> None:
        pass


def test_a_round_follows_from_seed_and_number() -> None:
    assert soak.round_of(1, 7) == soak.round_of(1, 7)
    assert soak.round_of(1, 7) != soak.round_of(1, 8) != soak.round_of(2, 8)


def test_what_is_wrong_ends_it(tmp_path: Path) -> None:
    state, told, runner = soak.State(3), [], Dying()
    soak.soak(state, runner, tmp_path, 1.0, lambda s: told.append(s.rounds))
    assert state.problems == ["the simulation ended early"]
    assert told == [1]
    assert runner.runs == 1
    assert state.tensors
    assert state.hit


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(soak, "_FOLDER", tmp_path)
    monkeypatch.setattr(soak, "build_native", lambda files, folder: tmp_path)
    monkeypatch.setattr(soak, "engine_files", lambda lanes: {})
    monkeypatch.setattr(soak, "Runner", lambda program, seconds: Dying())
    return tmp_path


def test_state_is_kept_and_the_fault_can_be_repeated(
    command: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak.main(["--seed", "3", "--minutes", "1"]) == 1
    assert "again: make soak SEED=3 ROUND=0" in capsys.readouterr().err
    assert soak.main(["--seed", "3", "--minutes", "1"]) == 1
    assert "seed 3: going on after round 1" in capsys.readouterr().out
    kept = (command / "seed-3.json").read_text()
    assert soak.main(["--seed", "3", "--round", "0"]) == 1
    assert (command / "seed-3.json").read_text() == kept


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"rounds": '])
def test_state_of_nobody(command: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (command / "seed-1.json").write_text(text)
    assert soak.main([]) == 2
    error = capsys.readouterr().err
    assert "is not the state of a soak; remove it" in error
    assert len(error.splitlines()) == 1


def test_minutes_are_checked(command: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--minutes", "0"])
    assert "minutes must be above 0" in capsys.readouterr().err
