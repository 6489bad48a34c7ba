"""Plans and sweeps for a user's model, on the command line and on any executor."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import planezip.sim
from planezip.cli import main
from planezip.cli.planning import parse_bytes
from planezip.sim.advise import advise, smallest_budget, sweep
from planezip.sim.build_graph import build_graph
from planezip.sim.eval import with_means
from planezip.sim.experiments import Job, fig4_jobs, fig5_jobs, fig6_jobs, run_job, run_jobs
from planezip.sim.graph import Graph
from planezip.sim.measurements import ratios_path, shipped_ratios
from planezip.sim.plan import InfeasibleError
from planezip.sim.planner import Planner, compressed_recipes
from planezip.sim.platform import load_platform
from planezip.sim.ratios import RatiosError, placed
from planezip.sim.shipped import shipped_trace
from planezip.sim.sizes import Sizes, paper_sizes, table_sizes
from planezip.sim.timeline import timeline

SCHEMAS = Path(planezip.sim.__file__).parent / "schemas"
FP32 = ratios_path("resnet50_random", "float32")


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def model() -> tuple[Graph, Sizes]:
    graph = build_graph(shipped_trace("resnet50"), load_platform("B"))
    return graph, table_sizes(graph)


def test_replays_that_keep_beat_the_paper_s_portfolio(model: tuple[Graph, Sizes]) -> None:
    graph, sizes = model
    budget = graph.peak_bytes * 4 // 10
    paper = Planner(graph, sizes.planned["PlaneZip"]).choose(compressed_recipes(), budget)
    ours = advise(graph, sizes, budget)
    assert ours.outcome.iteration_ns <= paper.predicted.iteration_ns
    assert ours.summary.peak_bytes <= budget


def test_sweep_on_any_executor(model: tuple[Graph, Sizes]) -> None:
    graph, sizes = model
    budgets = [graph.peak_bytes * p // 100 for p in (5, 40, 60, 100)]
    here = sweep(graph, sizes, budgets, ["PlaneZip"])
    with ThreadPoolExecutor(1) as executor:
        assert sweep(graph, sizes, budgets, ["PlaneZip"], executor) == here
    assert here[0]["overhead_percent"] is None
    assert "lacks" in here[0]["reason"]
    best = [row["best_percent"] for row in here[1:]]
    assert best == sorted(best, reverse=True)
    assert here[-1]["overhead_percent"] == 0


def test_jobs_on_a_dask_cluster() -> None:
    distributed = pytest.importorskip("distributed", reason="pip install distributed")
    jobs = [Job("fig4", "resnet50", "B", budget, "BW") for budget in (50, 70)]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = list(run_jobs(jobs, client.get_executor()))
    assert rows == [run_job(job) for job in jobs]


def test_smallest_budget_is_where_plans_end(model: tuple[Graph, Sizes]) -> None:
    graph, sizes = model
    smallest = smallest_budget(graph)
    assert graph.minimum_bytes <= smallest <= graph.peak_bytes
    assert advise(graph, sizes, smallest, "no engine").summary.peak_bytes <= smallest
    with pytest.raises(InfeasibleError):
        advise(graph, sizes, graph.minimum_bytes - 1, "no engine")


def test_every_figure_has_its_jobs() -> None:
    assert len(fig4_jobs("paper")) == 5 * 2 * 7 * 6
    assert len(fig5_jobs("captured")) == 5 * 2 * 9
    assert {job.figure for job in fig6_jobs("paper")} == {"fig6a", "fig6b"}


def test_rows_follow_the_schema_and_carry_the_paper_s_number() -> None:
    jobs = [Job("fig4", "vit_b16", "A", 50, "BW"), Job("fig4", "vit_b16", "A", 50, "RECOMP")]
    rows = with_means(list(run_jobs(jobs)))
    jsonschema.validate({"format": "planezip-eval", "version": 1, "rows": rows}, schema("eval"))
    assert [row["paper_percent"] for row in rows] == [1.0, None]


def test_paper_preset_has_the_printed_totals() -> None:
    for where, total in (("A", 1.50), ("B", 1.88)):
        graph = build_graph(shipped_trace("resnet50"), load_platform(where))
        wire = paper_sizes(graph, "resnet50").planned["PlaneZip"]
        assert graph.tensor_bytes.sum() / wire.sum() == pytest.approx(total, abs=1e-3)
        assert (wire <= graph.tensor_bytes).all()


def test_timeline_has_tracks_counters_and_flows(model: tuple[Graph, Sizes]) -> None:
    graph, sizes = model
    found = advise(graph, sizes, graph.peak_bytes // 2)
    events = timeline(found.log)["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {"compute", "device to host", "host to device", "engine, out", "engine, in"}
    counters = {e["name"]: e["args"]["bytes"] for e in events if e["ph"] == "C"}
    assert counters["host pool"] == 0  # the last value
    peak = max(e["args"]["bytes"] for e in events if e.get("name") == "device memory")
    assert peak == found.summary.peak_bytes
    swaps = sum(e["event"] == "swap_out" for e in found.log.events)
    assert swaps > 0
    for phase in "stf":
        assert sum(e["ph"] == phase for e in events) == swaps


def test_plan_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"{name}.json" for name in ("plan", "events", "timeline")}
    code = main(
        [
            *("plan", "--trace", "resnet50", "--platform", "B", "--budget", "2.8GB"),
            *("-o", str(files["plan"]), "--events", str(files["events"])),
            *("--timeline", str(files["timeline"]), "--keep", "0"),
        ]
    )
    text = capsys.readouterr().out
    assert code == 0
    assert all(word in text for word in ("no engine", "ZVC", "PlaneZip", "keep:", "drop:"))
    plan = json.loads(files["plan"].read_text())
    jsonschema.validate(plan, schema("plan"))
    jsonschema.validate(json.loads(files["events"].read_text()), schema("events"))
    first = next(row for row in plan["tensors"] if row["operator"] == 0)
    assert first["decision"] == "keep"
    assert "traceEvents" in json.loads(files["timeline"].read_text())


def test_plan_for_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "--trace", "resnet50", "--platform", "B", "--json", "--device-memory"]
    assert main([*command, "4GiB"]) == 0
    plan = json.loads(capsys.readouterr().out)
    trace = shipped_trace("resnet50")
    outside = trace.parameter_bytes + trace.gradient_bytes + trace.optimizer_state_bytes
    assert plan["budget_bytes"] == (4 << 30) - outside
    assert main([*command, "0.1GB"]) == 2
    assert "optimizer state" in capsys.readouterr().err


def test_sweep_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", "--trace", "resnet50", "--platform", "B", "--percent", "60-80/20"]
    assert main([*command, "--threads", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["rows"]) == 6
    assert main([*command, "--threads", "1"]) == 0
    assert "smallest budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["plan", "--budget", "0.5GB"], "lacks"),
        (["plan", "--budget", "3GB", "--drop", "x"], "OPERATOR"),
        (["plan", "--budget", "3GB", "--drop", "99999"], "no saved tensor"),
        (["plan", "--budget", "3GB", "--drop=-1"], "cannot be dropped"),
        (["plan", "--budget", "3GB", "--keep", "0", "--drop", "0"], "pinned in two ways"),
        (["plan", "--budget", "3GB", "--ratios", "absent"], "planezip capture"),
        (["plan", "--budget", "3GB", "--ratios", str(FP32)], "--type bfloat16"),
        (["sweep", "--percent", "10-100000000000/1"], "30-100/10"),
        (["sweep", "--percent", "a-b"], "30-100/10"),
        (["sweep", "--percent", "0-10/5"], "30-100/10"),
    ],
)
def test_bad_input_gives_one_line(
    options: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [options[0], "--trace", "resnet50", "--platform", "B", *options[1:]]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert error in message
    assert message.count("\n") == 1


def test_ratios_find_their_tensors_at_another_batch_size() -> None:
    mapped = shipped_ratios("resnet50_random", "bfloat16")
    assert mapped is not None
    trace = shipped_trace("resnet50")
    assert placed(mapped, trace) is mapped
    bare = replace(mapped, trace_bytes=0, tensors=[replace(t, storage=-1) for t in mapped.tensors])
    assert list(placed(bare, trace).tensors) == list(mapped.tensors)
    with pytest.raises(RatiosError, match="is not saved in this trace"):
        placed(bare, shipped_trace("vit_b16"))


def test_a_budget_has_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--trace", "resnet50", "--platform", "B", "--budget", "9999999TB"])
    assert "must be at most" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [("12GB", 12 * 10**9), ("1.5GiB", 3 << 29), ("7", 7), ("2 kb", 2000), ("1TiB", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size
