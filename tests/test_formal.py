"""Framework of the proofs, and the quick ones (`make formal` runs all; docs/proof.md)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from formal.__main__ import all_properties, main
from formal.check import Check
from formal.netlist import ready_to_valid
from formal.prove import MODES, Property, broken, prove
from formal.report import table, write
from formal.smt import export
from formal.solve import SOLVERS
from formal.streams import offered, separate, stable

SCHEMA = json.loads((Path(__file__).parents[1] / "formal" / "report.schema.json").read_text())
QUICK = [item for item in all_properties() if item.quick]


class Counter(wiring.Component):
    """Counts to ``last`` and starts again."""

    def __init__(self, last: int = 9) -> None:
        self._last = last
        super().__init__({"up": In(1), "count": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.up):
            m.d.sync += self.count.eq(self.count + 1)
            with m.If(self.count == self._last):
                m.d.sync += self.count.eq(0)
        return m


class Shy(wiring.Component):
    """A stream that breaks the rules: valid waits for ready, and the payload changes."""

    def __init__(self) -> None:
        super().__init__({"values": Out(stream.Signature(4))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.values.valid.eq(self.values.ready)
        m.d.sync += self.values.payload.eq(self.values.payload + 1)
        return m


class Silent(Shy):
    """It holds what it offers, but never offers anything: its count does not get to 12."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = Counter()
        m.d.comb += [
            counter.up.eq(~self.values.valid),
            self.values.payload.eq(counter.count),
        ]
        with m.If(~self.values.valid | self.values.ready):
            m.d.sync += self.values.valid.eq(counter.count == 12)
        return m


class Restless(Shy):
    """Its payload changes while it waits."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.values.valid.eq(1)
        m.d.sync += self.values.payload.eq(self.values.payload + 1)
        return m


def below(limit: int, vacuous: bool = False, last: int = 9) -> Check:
    dut = Counter(last)
    check = Check(dut)
    check.feed(dut.up, "up")
    check.always(dut.count < limit)
    check.reach(dut.count == limit - 1)
    if vacuous:
        check.require(dut.count == 15)
    return check


def status(check: object, mode: str, depth: int, solver: str = "bitwuzla") -> str:
    made = Property("", lambda: check, mode, depth, lambda: below(4), "none")  # type: ignore[arg-type,return-value]
    return prove(made, solver).status


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_true_and_false_properties(solver: str) -> None:
    assert status(below(10), "bmc", 14, solver) == "proven"
    assert status(below(10), "induction", 1, solver) == "proven"
    assert status(below(9), "bmc", 10, solver) == "failed"
    assert status(below(9), "bmc", 9, solver) == "proven"  # nine cycles: 0 to 8
    assert status(below(12), "induction", 1, solver) == "failed"  # true, but not inductive
    assert status(below(10), "cover", 10, solver) == "covered"
    assert status(below(10), "cover", 9, solver) == "failed"


def test_contradicting_assumptions_prove_nothing() -> None:
    assert status(below(3, vacuous=True), "bmc", 4) == "failed"


def test_lemma_makes_a_property_inductive() -> None:
    item = Property("", lambda: below(12), "induction", 1, lemmas=("(bvule {dut.count} #x9)",))
    verdict = prove(item)
    assert verdict.status == "proven"
    assert verdict.obligations == 2  # the assertion and the lemma


def test_mutants_of_yosys() -> None:
    verdict = prove(Property("", lambda: below(10), "bmc", 14))
    assert verdict.passed
    assert verdict.mutant.startswith("mutate ")
    assert "dut" in verdict.mutant


def test_a_mutant_that_holds_is_no_proof() -> None:
    item = Property("", lambda: below(10), "bmc", 14, lambda: below(11), "limit 11")
    verdict = prove(item)
    assert verdict.status == "proven"
    assert not verdict.passed


def test_a_mutant_that_is_only_not_inductive_is_no_proof() -> None:
    change = "limit 12: true of every run, but 11 may follow 10"
    item = Property("", lambda: below(10), "induction", 1, lambda: below(12), change)
    assert status(below(12), "induction", 1) == "failed"
    verdict = prove(item)
    assert verdict.status == "proven"
    assert not verdict.mutant_fails


def test_a_mutant_has_to_fail_in_the_cycles_of_the_property() -> None:
    def fails(within: int) -> bool:
        item = Property("", lambda: below(10), "induction", 1, lambda: below(9), "limit 9", within)
        return prove(item).mutant_fails

    assert not fails(9)  # cycles 0 to 8
    assert fails(10)


@pytest.mark.parametrize("mode", ["bmc", "induction", "cover"])
def test_a_mutant_whose_assumptions_contradict_each_other_is_no_proof(mode: str) -> None:
    def contradicted() -> Check:
        return below(3, vacuous=True)

    item = Property("", lambda: below(10), mode, 10, contradicted, "no run at all")
    verdict = prove(item)
    assert verdict.status in ("proven", "covered")
    assert not verdict.mutant_fails


def test_a_mutant_that_breaks_a_lemma_only_is_no_proof() -> None:
    lemmas = ("(bvule {dut.count} #x9)",)

    def changed() -> Check:
        return below(12, last=10)

    item = Property("", lambda: below(12), "induction", 1, changed, "to 10", 14, lemmas=lemmas)
    verdict = prove(item)
    assert verdict.status == "proven"
    assert not verdict.mutant_fails


def test_obligations_are_counted_after_export() -> None:
    check = below(10)
    check.always(Signal(1) == 0)  # nothing drives it: true, and no obligation
    assert export(check.rtlil()).obligations == 1
    assert prove(Property("", lambda: Check(Counter()), "bmc", 2)).passed is False


def test_streams_that_break_the_rules() -> None:
    assert status(stable(Restless, "values"), "bmc", 4) == "failed"
    assert status(offered(Shy, "values"), "cover", 8) == "failed"
    assert status(offered(Silent, "values"), "cover", 8) == "failed"
    assert status(offered(Restless, "values"), "cover", 8) == "covered"
    assert ready_to_valid(separate(Shy).rtlil()) == (1, ["values_ready -> values_offer"])
    assert ready_to_valid(separate(Restless).rtlil()) == (1, [])


def test_a_stream_that_is_never_offered_is_no_proof() -> None:
    build, mutant = (partial(stable, Silent, "values", broken=k) for k in (False, True))
    verdict = prove(Property("", build, "induction", 1, mutant, "the component sees ready = 1"))
    assert (verdict.status, verdict.obligations) == ("proven", 2)
    assert not verdict.mutant_fails


def test_names_modes_and_mutants() -> None:
    items = list(all_properties())
    assert len({item.name for item in items}) == len(items)
    for item in items:
        assert item.mode in MODES
        assert (item.mutant is None) == (item.change == "")
        assert item.mode != "induction" or item.within > item.depth


@pytest.mark.parametrize("item", QUICK, ids=[item.name for item in QUICK])
def test_quick_property(item: Property) -> None:
    verdict = prove(item)
    assert verdict.passed, verdict


def test_report_and_table(tmp_path: Path) -> None:
    verdict = prove(Property("counter", lambda: below(10), "bmc", 14))
    path = tmp_path / "report.json"
    write(path, [verdict], "bitwuzla", 1.0)
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    assert "1 of 1 properties, 1 obligations" in table([verdict])


def test_a_property_that_cannot_be_proven_fails() -> None:
    item = Property("counter", lambda: below(10), lemmas=("(= {dut.no_such_wire} #b0)",))
    with pytest.raises(Exception, match="no_such_wire") as caught:
        prove(item)
    verdict = broken(item, caught.value, "bitwuzla")
    assert not verdict.passed
    assert "no_such_wire" in verdict.mutant


@pytest.mark.parametrize("count", ["0", "-1"])
def test_no_workers(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["comparator", "--workers", count])
    assert caught.value.code == 2
    assert "--workers: must be 1 or more" in capsys.readouterr().err


def test_unknown_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-property"]) == 2
    assert "no-such-property" in capsys.readouterr().err
