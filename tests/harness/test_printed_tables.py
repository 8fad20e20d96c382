"""A table of printed settings as it is read: fields, inheritance, and what a claim is held against."""

from __future__ import annotations

import pytest

from suite.papers.printed import printed, printed_value
from suite.papers.printed_settings import SCALES, Experiment, Printed, SettingsError, load
from suite.papers.published import published

IDS = frozenset({"toy/fig1/gain", "toy/fig1/loss", "toy/fig2/rate"})
WHOLE = """
data = { is = "mnist", where = "2" }
preparation = "not printed"
network = { is = ["lenet", "vgg"], where = "3" }
batch = { range = [1, 128], where = "4", total = true }
rate = { is = 0.1, times = "1 / n", where = "5" }
momentum = "not printed"
decay = "not printed"
drops = { is = [[50, 0.5], [80, 0.25]], where = "6" }
seeds = "not printed"
sample = { share = 0.2, where = "7" }
epochs = { is = 100, where = "8" }
"""


def table(tmp_path, text):
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return load(path, IDS)


def test_a_field_holds_a_value_alternatives_a_range_a_share_or_nothing(tmp_path):
    experiment = table(tmp_path, f"[groups.one]{WHOLE}").experiments["one"]
    assert experiment["data"] == Printed("2", ("mnist",))
    assert experiment["network"] == Printed("3", ("lenet", "vgg"))
    assert experiment["batch"] == Printed("4", ends=(1, 128), total=True)
    assert experiment["rate"] == Printed("5", (0.1,), times="1 / n")
    assert experiment["drops"].values == ([[50, 0.5], [80, 0.25]],)  # a schedule is one value
    assert experiment["sample"] == Printed("7", share=0.2)
    assert (experiment["seeds"], experiment["until"], experiment["data"].total) == (None, None, False)


def test_a_group_has_the_fields_of_what_it_is_like_but_for_its_own(tmp_path):
    text = f"[groups.one]{WHOLE}[groups.two]\nlike = 'one'\nseeds = {{ is = 3, where = '9' }}\n"
    text += "[groups.three]\nlike = 'two'\nepochs = 'not printed'\nupdates = { is = 7, where = '9' }\n"
    one, two, three = table(tmp_path, text).experiments.values()
    assert {**two.fields, "seeds": None} == one.fields
    assert (two["seeds"].values, three["seeds"].values, three["epochs"], three["updates"].values) == (
        (3,),
        (3,),
        None,
        (7,),
    )
    assert three["data"] == one["data"]


def test_groups_that_are_like_each_other_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"\[groups\.two\]: there is no group 'one' that it could be like"):
        table(tmp_path, "[groups.one]\nlike = 'two'\n[groups.two]\nlike = 'one'\n")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[exact]\n'toy/run' = 3\n", "toy/run: it must say why"),
        ("[groups.one]\nrate = { is = 3, where = '' }\n", r"\[groups.one\] rate: it does not say where"),
        ("[groups.one]\nrate = { is = 3, where = 3 }\n", r"\[groups.one\] rate: it does not say where"),
        ("[groups.one]\nrate = { is = 3, share = 0.1, where = '3' }\n", "needs one of `is`, `range` and `share`"),
        ("[groups.one]\nrate = { is = 3, where = '3', at = 3 }\n", r"rate: unknown \['at'\]"),
        ("hardware = 'K80'\n", "hardware = 'K80': it must be a table"),
        ("[artifacts.fig1.gain]\nfrom = ['two']\n", r"toy.toml \[artifacts.fig1.gain\]: there is no group 'two'"),
        ("[artifacts.fig1]\ngain = 3\n", r"\[artifacts.fig1\]: what is said of the claims \['gain'\] must be tables"),
        ("[artifacts.fig1.gain]\nspeed = 3\n", r"toy.toml \[artifacts.fig1.gain\]: unknown \['speed'\]"),
        ("[artifacts.fig1]\nrate = 3\n", r"toy.toml \[artifacts.fig1\] rate = 3: it must be a table"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_its_place(tmp_path, text, wrong):
    with pytest.raises(SettingsError, match=wrong):
        table(tmp_path, text)


def test_a_claim_is_held_against_its_artifact_s_experiments_unless_it_names_its_own(tmp_path):
    text = f"[groups.one]{WHOLE}[groups.two]\nlike = 'one'\n"
    text += "[artifacts.fig1]\nfrom = ['one', 'two']\nevery = true\n[artifacts.fig1.gain]\nfrom = ['two']\n"
    made = table(tmp_path, text)
    gain, loss = made.basis("toy/fig1/gain"), made.basis("toy/fig1/loss")
    assert ([e.name for e in gain.experiments], gain.named) == (["two"], True)
    assert ([e.name for e in loss.experiments], loss.named) == (["one", "two"], False)
    assert (gain.every, loss.every, loss.speaks_of, loss.machine) == (True, True, "", None)


def test_an_artifact_that_names_no_experiment_is_held_against_all_that_train(tmp_path):
    text = f"[groups.one]{WHOLE}[groups.card]\nnetwork = {{ is = 'vgg', where = '9' }}\n"
    text += "[groups.half]\ndata = { is = 'mnist', where = '9' }\n"
    text += "[artifacts.fig1.gain]\ndata = { is = 'cifar10', where = '9' }\n"
    made = table(tmp_path, text)
    general, changed = made.basis("toy/fig2/rate"), made.basis("toy/fig1/gain")
    assert [e.name for e in general.experiments] == [e.name for e in changed.experiments] == ["one"]
    assert (general.experiments[0]["data"].values, changed.experiments[0]["data"].values) == (
        ("mnist",),
        ("cifar10",),
    )
    assert (general.every, general.named, changed.named) == (False, False, False)
    assert [made.experiments[name].trains for name in ("one", "card", "half")] == [True, False, True]


def test_an_artifact_that_states_fields_without_data_is_an_experiment_of_its_own(tmp_path):
    text = f"hardware = {{ is = 'K80', where = '1' }}\n[groups.one]{WHOLE}"
    text += "[artifacts.fig1]\nnetwork = { is = 'alexnet', where = '9' }\n"
    text += "[artifacts.fig1.gain]\nhardware = { is = 'TITAN', where = '9' }\n"
    made = table(tmp_path, text)
    (only,) = made.basis("toy/fig1/loss").experiments
    assert (only.name, set(only.fields), only["network"].values) == ("fig1", {"network"}, ("alexnet",))
    machines = [made.basis(f"toy/fig1/{name}").machine.values for name in ("gain", "loss")]
    assert machines == [("TITAN",), ("K80",)]


def test_an_experiment_without_a_data_set_trains_nothing():
    assert not Experiment("toy", {"data": None}).trains
    assert Experiment("toy", {"data": Printed("1", ("mnist",))}).trains


def test_rates_scale_with_batch_and_learners_or_with_n():
    assert SCALES["sqrt(mu lambda / 128)"](8, 64, 0) == 2.0
    assert SCALES["1 / n"](8, 64, 4) == 0.25
    assert SCALES["1 / n"](8, 64, 0) != SCALES["1 / n"](8, 64, 0)  # not a number


def test_a_printed_number_is_found_by_its_claim():
    several = next(claim for claim in published("isgd") if len(claim.printed) > 1)
    one = next(claim for claim in published("isgd") if len(claim.printed) == 1)
    assert (printed(several.id), printed_value(one.id)) == (several.printed, one.printed[0])
    with pytest.raises(ValueError):
        printed_value(several.id)
    with pytest.raises(KeyError, match="isgd/fig5a/nothing"):
        printed("isgd/fig5a/nothing")
