"""Measured speed as documents and tables: what is refused, what is compared, and what is said in words."""

from __future__ import annotations

import json

import pytest

from suite.report import speed, speed_figures
from suite.report.speed import DocumentError, attained, check, quartiles, ratio, rows, title

FLOOR = {"flops_per_second": 1e9, "bytes_per_second": 1e9, "copies": [[1e9, 1e9]]}


def timed(*seconds, threads=1, **more):
    return {"seconds": list(seconds), "threads": threads, "processor": None, **more}


def workload(family="training", *, examples=16, flops=5e8, moved=1e7, **sides):
    named = {name.replace("_", " "): side for name, side in sides.items()}
    return {
        "family": family,
        "unit": "s",
        "examples": examples,
        "flops": flops,
        "bytes": moved,
        "sides": named,
        "ratio": None,
    }


def document(**workloads):
    when = {"load_average": 0.25}
    machine = {"class": "small", "cpu": "Imaginary", "cores": 2}
    made = {"format": 1, "machine": machine, "versions": {"torch": "2.13.1"}, "started": when, "ended": when}
    return {**made, "floors": {"1": FLOOR}, "workloads": {name.replace("_", " "): w for name, w in workloads.items()}}


LENET = workload(ours=timed(1.0, 1.0, 1.0), plain=timed(2.0, 4.0, 3.0))


@pytest.mark.parametrize("key", ["machine", "versions", "started", "ended", "floors", "workloads"])
def test_a_document_lacks_no_part(key):
    made = document(LeNet=LENET)
    assert check(made) is made
    del made[key]
    with pytest.raises(DocumentError, match=f"^it is no benchmark document of format 1: {key} is missing$"):
        check(made, "it")


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        ([], "its format is no object"),
        ({"format": 3}, "its format is 3"),
        ({**document(), "machine": {"cpu": "x"}}, "machine.class is missing"),
        (document(a={**LENET, "sides": {"ours": timed(1.0, 0.0)}}), "seconds must be positive numbers"),
        (document(a={**LENET, "sides": {"ours": timed(1.0, float("inf"))}}), "seconds must be positive numbers"),
        (document(a={**LENET, "sides": {"ours": timed(1.0, "2")}}), "seconds must be positive numbers"),
        (document(a={**LENET, "sides": {"ours": {"threads": 1}}}), "seconds must be positive numbers"),
    ],
)
def test_what_no_benchmark_can_have_written_is_refused(made, wrong):
    with pytest.raises(DocumentError, match=wrong):
        check(made)


@pytest.mark.parametrize("key", speed.WORKLOAD_KEYS)
def test_a_workload_lacks_no_part(key):
    with pytest.raises(DocumentError, match=f"workload 'LeNet' lacks {key}"):
        check(document(LeNet={name: value for name, value in LENET.items() if name != key}))


def test_sides_that_were_left_out_need_no_samples():
    made = document(LeNet={**LENET, "sides": {**LENET["sides"], "jax": {"not_available": "absent"}}})
    assert check(made) is made


def test_committed_documents_come_the_newest_torch_of_a_machine_first(tmp_path):
    for version in ("2.11.0", "2.13.1"):
        made = {**document(), "versions": {"torch": version}}
        (tmp_path / f"{speed.file_stem(made)}.json").write_text(json.dumps(made))
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["small.torch-2.11", "small.torch-2.13"]
    assert [made["versions"]["torch"] for made in speed.committed(tmp_path)] == ["2.13.1", "2.11.0"]
    assert speed.committed(tmp_path / "absent") == []


def test_quartiles_of_few_values():
    assert quartiles([2.0]) == [2.0, 2.0, 2.0]
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == [2.0, 4.0, 6.0]


def test_a_ratio_has_ours_and_another():
    assert ratio(LENET) == {"rival": "plain", "ours": "ours", "median": 3.0, "quartiles": [2.0, 4.0]}
    assert ratio(workload(ours=timed(1.0))) is ratio(workload(plain=timed(1.0))) is ratio(workload()) is None


def test_a_form_that_was_left_for_its_slowness_is_told_by_how_much():
    why = "3.0 s an update when warmed up; the fastest of its kind takes 2.0 s"
    made = workload(ours=timed(1.0), plain=timed(1.0), plain_fused={"not_available": why})
    assert speed.absent(made, []) == "1 more form (1.5 times as long when warmed up)"
    assert speed.reasons(document(LeNet=made)) == []


def test_calls_limit_only_what_makes_calls_on_a_device_that_counts_them():
    looped = workload(ours=timed(10.0, execution={"path": "looped"}))
    assert attained(looped, "ours", {"1": {**FLOOR, "call_seconds": 1e6}}).bound == "products"
    assert attained({**looped, "calls": 1000}, "ours", {"1": FLOOR}).bound == "products"
    assert attained({**looped, "calls": 3}, "ours", {"1": {**FLOOR, "call_seconds": 2.0}}).limit_seconds == 6.0
    assert attained(workload(ours=timed(1.0), moved=0.0), "ours", {"1": FLOOR}) is None


def test_a_machine_is_called_by_its_card_or_its_processor():
    made = document(LeNet=LENET)
    assert title(made) == "Imaginary, 2 cores, torch 2.13.1, load average 0.25 to 0.25"
    made["machine"]["gpu"], made["ended"] = "K80", {"load_average": 3.0}
    assert title({**made, "versions": {}}) == "K80, torch unknown, load average 0.25 to 3"


@pytest.mark.parametrize(
    ("medians", "said"), [((0.2, 12.4), "up to 12%"), ((12.4, 0.2), "up to 12%"), ((0.6,), "up to 1%")]
)
def test_the_most_time_lost_to_other_machines_is_said(medians, said):
    lost = {
        f"w{n}": {**LENET, "telemetry": {"cpu": {"stolen_percent": {"median": m}}}} for n, m in enumerate(medians)
    }
    assert said in title(document(**lost))


def test_half_a_percent_lost_to_other_machines_is_not_told_as_none():
    lost = {"w": {**LENET, "telemetry": {"cpu": {"stolen_percent": {"median": 0.5}}}}}
    assert "other virtual machines" not in title(document(**lost))


def test_a_row_names_the_threads_of_ours_and_leaves_an_unknown_limit_empty():
    several = {"ours": timed(2.0), "ours, 2 threads": timed(1.0, threads=2), "plain": timed(3.0)}
    one = rows(document(LeNet={**LENET, "sides": several}))
    assert one == [("LeNet (ours, 2 threads)", "3.00 x", "3.00 to 3.00", "plain", "", "", "")]
    (other,) = rows(document(LeNet=LENET))
    assert (other[0], other[-2:]) == ("LeNet", ("50%", "products"))
    assert len(other) == len(speed.COLUMNS)


def test_throughput_is_examples_over_seconds_of_the_fastest_form():
    made = {
        "SMA LeNet, k=1": workload("averaging", examples=16, ours=timed(2.0)),
        "SMA LeNet, k=4": workload("averaging", examples=64, **{"ours": timed(9.0), "ours, 2 threads": timed(4.0)}),
        "SMA VGG, k=1": workload("averaging", ours=timed(2.0)),
        "SMA ResNet, k=2": workload("averaging", plain=timed(2.0)),
    }
    assert speed.throughput_gains(document(**made)) == {"SMA LeNet": {"k=4": 2.0}}
    assert speed.sentences({}) == ""


def test_without_a_document_the_block_says_so():
    assert speed.tables([]) == "No machine has been measured yet."
    several = speed.tables([document(LeNet=LENET), document(VGG=LENET)])
    assert several.count("| workload | ours against") == 2
    assert "\n\nImaginary, 2 cores" in several


def grown(axis, value, *seconds, gradients=1, **more):
    return {**workload("growth", ours=timed(*seconds), **more), "axis": [axis, value], "gradients": gradients}


def test_growth_is_listed_by_the_value_of_its_axis():
    made = document(a=grown("batch", 16, 1.0), b=grown("batch", 2, 1.0), c=grown("replicas", 1, 1.0), d=LENET)
    assert [value for value, _ in speed.grown(made, "batch")] == [2.0, 16.0]
    assert speed.grown(made, "parameters") == []
    assert speed.per_gradient(grown("batch", 2, 8.0, gradients=4), "ours") == [2.0, 2.0, 2.0]
    assert speed.per_gradient(LENET, "absent") is None


# --- drawings


def test_limits_bend_where_copies_and_products_take_as_long():
    made = document(
        a=workload(flops=5e6, moved=1e7, ours=timed(0.1)), b=workload(flops=2e7, moved=1e7, ours=timed(0.025))
    )
    drawn = speed_figures.roofline(made)
    (axes,) = drawn.figure.axes
    limit = next(line for line in axes.get_lines() if line.get_label() == "limit of 1 thread")
    assert list(limit.get_xdata()) == pytest.approx([0.25, 1.0, 4.0])
    assert list(limit.get_ydata()) == pytest.approx([2.5e8, 1e9, 1e9])
    assert "2 workloads; ours attains from 10% to 80% of its limit" in drawn.artifact.alt
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "FLOP / byte" in axes.get_xlabel()
    assert "FLOP/s" in axes.get_ylabel()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["limit of 1 thread", "ours"]


def test_the_least_and_the_largest_share_are_told_whatever_comes_first():
    a, b = workload(flops=5e6, moved=1e7, ours=timed(0.1)), workload(flops=2e7, moved=1e7, ours=timed(0.025))
    assert "from 10% to 80%" in speed_figures.roofline(document(a=b, b=a)).artifact.alt


def test_the_band_of_updates_reaches_from_the_first_to_the_third_quartile():
    made = document(**{f"b{m}": grown("batch", m, *(m * s for s in (1.0, 2.0, 3.0, 4.0, 5.0))) for m in (1, 4)})
    (axes,) = speed_figures.against_batch(made).figure.axes
    bands = [tuple(path.vertices[:, 1]) for band in axes.collections for path in band.get_paths()]
    heights = [(min(y), max(y)) for y in bands]
    assert (pytest.approx(2000.0), pytest.approx(16_000.0)) in heights
    assert len(axes.get_xticks(minor=True)) == 0
    assert axes.get_legend().get_title().get_text() == ""
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("examples of the batch, M", "milliseconds of an update")


def test_growth_has_a_panel_for_each_axis_and_one_for_memory():
    several = {"memory_per_replica_bytes": 100}
    made = document(**{f"p{n}": {**grown("parameters", n, 1.0, 2.0, 3.0, 6.0, 9.0), **several} for n in (10, 1000)})
    made["workloads"]["p10"]["sides"]["compiled"] = timed(1.0, 1.0, 1.0, 1.0, 1.0)
    made["workloads"]["p10"]["sides"]["plain"] = timed(5.0, 5.0, 5.0, 5.0, 5.0)
    made["workloads"]["p1000"]["memory_per_replica_bytes"] = 300
    figure = speed_figures.growth(made).figure
    replicas, batch, parameters, memory = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == [
        *["seconds per gradient"] * 3,
        "bytes that a replica keeps",
    ]
    assert [text.get_text() for text in parameters.get_legend().get_texts()] == ["ours", "plain loop"]
    (line,) = memory.get_lines()
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([10.0, 1000.0], [100, 300])
    bars = [segment[:, 1].tolist() for segment in parameters.containers[0].lines[2][0].get_segments()]
    assert bars == [pytest.approx([1.5, 7.5])] * 2
    assert not replicas.containers
    assert not batch.containers
    assert tuple(figure.get_size_inches()) == (8.4, 5.6)
