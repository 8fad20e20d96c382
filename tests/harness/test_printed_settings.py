"""The table of printed settings: what the loader refuses, and what a claim's own entry changes."""

from __future__ import annotations

import pytest

from suite.papers.catalogue import paper
from suite.papers.described import describe
from suite.papers.grades import departures, told_of
from suite.papers.printed_settings import SettingsError, load, settings

GROUP = """
[groups.one]
data = { is = "mnist", where = "2" }
preparation = "not printed"
network = { is = "caffe_lenet", where = "2" }
batch = "not printed"
rate = "not printed"
momentum = "not printed"
decay = "not printed"
drops = "not printed"
seeds = "not printed"
sample = "not printed"
epochs = "not printed"
"""


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
    path = tmp_path / "toy.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load(path, frozenset({"toy/fig1/gain"}))
    assert wrong in str(refused.value)
    assert "toy.toml" in str(refused.value)


def test_a_claim_s_own_entry_stands_over_its_artifact_s(tmp_path):
    path = tmp_path / "toy.toml"
    own = "[artifacts.fig1]\nfrom = ['one']\n"
    own += "[artifacts.fig1.gain]\nepochs = { is = 3, where = '5' }\nspeaks_of = 'three'\n"
    path.write_text("hardware = { is = ['K80'], where = '4' }\n" + GROUP + own)
    table = load(path, frozenset({"toy/fig1/gain", "toy/fig1/loss"}))
    (gain,), (loss,) = (table.basis(f"toy/fig1/{name}").experiments for name in ("gain", "loss"))
    assert gain["epochs"].values == (3,)
    assert loss["epochs"] is None
    assert table.basis("toy/fig1/gain").speaks_of == "three"
    assert table.basis("toy/fig1/loss").machine.values == ("K80",)


def test_a_script_of_the_authors_is_a_source_beside_the_text():

    lenet = settings("crossbow").experiments["lenet"]
    assert "not rate, batch, momentum, decay" in told_of([lenet])
    (spec, *_) = paper("crossbow").artifact("crossbow/lenet").runs("paper")["sma 1"]
    found = [because for _, because in departures(describe(spec), lenet)]
    assert "batch 16 for 1 of the authors' script" in found
    assert "rate 0.01 for 0.001 of the authors' script" in found
