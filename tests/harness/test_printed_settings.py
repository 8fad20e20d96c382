"""The table of printed settings as it is read: fields, inheritance, what a claim is held against, what is refused."""

from __future__ import annotations

import pytest

from suite.papers.catalogue import paper
from suite.papers.grades import departures, told_of
from suite.papers.printed_settings import Printed, SettingsError, describe, load, settings

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


def table(tmp_path, text, ids=IDS):
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return load(path, ids)


GROUP = "[groups.one]\ndata = { is = 'mnist', where = '2' }\nnetwork = { is = 'caffe_lenet', where = '2' }\n"
SILENT = ("preparation", "batch", "rate", "momentum", "decay", "drops", "seeds", "sample", "epochs")
GROUP += "".join(f"{field} = 'not printed'\n" for field in SILENT)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[figures]\n", "unknown ['figures']"),
        ("[groups.one]\nspeed = 3\n", "unknown ['speed']"),
        ("[groups.one]\nrate = 3\n", "rate = 3: it must be a table with `is` and `where`, or 'not printed'"),
        ("[groups.one]\nrate = { is = 3 }\n", "rate: it does not say where the paper prints it"),
        ("[groups.one]\nrate = { where = '2' }\n", "it needs one of `is`, `range` and `share`"),
        ("[groups.one]\nrate = { is = 1, where = '2', times = 'lambda' }\n", "times = 'lambda' must be one of"),
        ("[groups.one]\ndrops = { every = 2, where = '2' }\n", "drops: it needs one of `is`"),
        ("[groups.one]\nrate = { every = 2, by = 1, where = '2' }\n", "are said of drops alone"),
        ("[groups.one]\ndrops = { is = [], when = 'late', where = '2' }\n", "are said of drops alone"),
        ("[groups.one]\nlike = 'two'\n", "there is no group 'two' that it could be like"),
        ("[groups.one]\nlike = 'one'\n", "there is no group 'one' that it could be like"),
        (GROUP + "[artifacts.fig9]\nfrom = ['one']\n", "[artifacts.fig9]: the paper has no such artifact"),
        (GROUP + "[artifacts.fig1]\nfrom = ['two']\n", "there is no group 'two'; there are ['one']"),
        (GROUP + "[artifacts.fig1.gian]\nfrom = ['one']\n", "unknown ['gian']"),
        (GROUP.replace("seeds", "rule") + "[artifacts.fig1]\nfrom = ['one']\n", "does not say ['seeds']"),
        (GROUP.replace("epochs", "rule") + "[artifacts.fig1]\nfrom = ['one']\n", "['epochs or updates or until']"),
        ("[exact]\n'toy/run' = ''\n", "toy/run: it must say why"),
        ("[groups\n", "toy.toml"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_name(tmp_path, text, wrong):
    with pytest.raises(SettingsError) as refused:
        table(tmp_path, text, frozenset({"toy/fig1/gain"}))
    assert wrong in str(refused.value)
    assert "toy.toml" in str(refused.value)


def test_a_claim_s_own_entry_stands_over_its_artifact_s(tmp_path):
    own = "[artifacts.fig1]\nfrom = ['one']\n"
    own += "[artifacts.fig1.gain]\nepochs = { is = 3, where = '5' }\nspeaks_of = 'three'\n"
    made = table(tmp_path, "hardware = { is = ['K80'], where = '4' }\n" + GROUP + own)
    (gain,), (loss,) = (made.basis(f"toy/fig1/{name}").experiments for name in ("gain", "loss"))
    assert gain.fields["epochs"].values == (3,)
    assert loss.fields["epochs"] is None
    assert made.basis("toy/fig1/gain").speaks_of == "three"
    assert made.basis("toy/fig1/loss").machine.values == ("K80",)


def test_a_script_of_the_authors_is_a_source_beside_the_text():

    lenet = settings("crossbow").experiments["lenet"]
    assert "not rate, batch, momentum, decay" in told_of([lenet])
    (spec, *_) = paper("crossbow").artifact("crossbow/lenet").runs("paper")["sma 1"]
    found = [because for _, because in departures(describe(spec), lenet)]
    assert "batch 16 for 1 of the authors' script" in found
    assert "rate 0.01 for 0.001 of the authors' script" in found


def test_a_field_holds_a_value_alternatives_a_range_a_share_or_nothing(tmp_path):
    experiment = table(tmp_path, f"[groups.one]{WHOLE}").experiments["one"]
    assert experiment.fields["data"] == Printed("2", ("mnist",))
    assert experiment.fields["network"] == Printed("3", ("lenet", "vgg"))
    assert experiment.fields["batch"] == Printed("4", ends=(1, 128), total=True)
    assert experiment.fields["rate"] == Printed("5", (0.1,), times="1 / n")
    assert experiment.fields["drops"].values == ([[50, 0.5], [80, 0.25]],)  # a schedule is one value
    assert experiment.fields["sample"] == Printed("7", share=0.2)
    assert (experiment.fields["seeds"], experiment.fields.get("until")) == (None, None)
    assert not experiment.fields["data"].total


def test_a_group_has_the_fields_of_what_it_is_like_but_for_its_own(tmp_path):
    text = f"[groups.one]{WHOLE}[groups.two]\nlike = 'one'\nseeds = {{ is = 3, where = '9' }}\n"
    text += "[groups.three]\nlike = 'two'\nepochs = 'not printed'\nupdates = { is = 7, where = '9' }\n"
    one, two, three = table(tmp_path, text).experiments.values()
    assert {**two.fields, "seeds": None} == one.fields
    assert two.fields["seeds"].values == three.fields["seeds"].values == (3,)
    assert three.fields["epochs"] is None
    assert three.fields["updates"].values == (7,)
    assert three.fields["data"] == one.fields["data"]


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
    assert general.experiments[0].fields["data"].values == ("mnist",)
    assert changed.experiments[0].fields["data"].values == ("cifar10",)
    assert (general.every, general.named, changed.named) == (False, False, False)
    assert [made.experiments[name].trains for name in ("one", "card", "half")] == [True, False, True]
