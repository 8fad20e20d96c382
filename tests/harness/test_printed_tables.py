"""A table of printed settings as it is read: fields, inheritance, and what a claim is held against."""

from __future__ import annotations

from suite.papers.printed_settings import Printed, load

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
