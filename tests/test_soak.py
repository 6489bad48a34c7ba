"""The soak without its simulation: rounds that repeat, state that is kept, faults that end it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from formal import soak
from tb.harness.native import Runner


class Dying(Runner):
    """A simulation that ends early after ``good`` runs; their results are not looked at."""

    def __init__(self, good: int = 0) -> None:
        self.runs = 0
        self._good = good

    def run(self, folder: Path, plusargs: Any) -> Any:
        assert (folder / "in.bin").exists()
        self.runs += 1
        return "good" if self.runs <= self._good else None

    def close(self) -> None:
        pass


def test_a_round_follows_from_seed_and_number() -> None:
    assert soak.round_of(1, 7) == soak.round_of(1, 7)
    assert soak.round_of(1, 7) != soak.round_of(1, 8) != soak.round_of(2, 8)


def test_what_is_wrong_ends_it(tmp_path: Path) -> None:
    state, told, runner = soak.State(3, ""), [], Dying()
    soak.soak(state, runner, tmp_path, 1.0, lambda s: told.append(s.rounds))
    assert state.problems == ["the simulation ended early"]
    assert told == [0]
    assert runner.runs == 1
    assert not state.tensors
    assert not state.hit


def test_a_round_that_is_wrong_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "path_result", lambda *_: SimpleNamespace(problems=()))
    state = soak.State(3, "")
    soak.soak(state, Dying(2), tmp_path, 1.0, lambda s: None)
    assert (state.rounds, state.problems) == (2, ["the simulation ended early"])
    assert state.tensors
    assert state.hit
    soak.soak(state, Dying(), tmp_path, 1.0, lambda s: None)
    assert (state.rounds, state.problems) == (2, ["the simulation ended early"])
    soak.soak(state, Dying(1), tmp_path, 1.0, lambda s: None, rounds=1)
    assert (state.rounds, state.problems) == (3, [])


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
    kept = (command / "seed-3.json").read_text()
    assert '"problems": ["the simulation ended early"]' in kept
    assert soak.main(["--seed", "3", "--round", "0"]) == 1
    assert (command / "seed-3.json").read_text() == kept


def test_other_hardware_begins_anew(
    command: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "path_result", lambda *_: SimpleNamespace(problems=()))
    monkeypatch.setattr(soak, "Runner", lambda program, seconds: Dying(2))
    assert soak.main(["--seed", "3"]) == 1
    assert soak.main(["--seed", "3"]) == 1
    assert "seed 3: going on after 2 rounds" in capsys.readouterr().out
    monkeypatch.setattr(soak, "engine_files", lambda lanes: {"a.v": ""})
    assert soak.main(["--seed", "3"]) == 1
    assert "going on" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"rounds": '])
def test_state_of_nobody(command: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (command / "seed-1.json").write_text(text)
    assert soak.main([]) == 2
    error = capsys.readouterr().err
    assert "is not the state of a soak; remove it" in error
    assert len(error.splitlines()) == 1


def test_minutes_are_checked(command: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for minutes in ("0", "nan"):
        with pytest.raises(SystemExit):
            soak.main(["--minutes", minutes])
        assert "minutes must be above 0" in capsys.readouterr().err
