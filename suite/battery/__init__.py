"""What every algorithm owes to the contract, as tests that a paper's own tests inherit.

    @pytest.mark.parametrize("case", [Case(Lookahead(HEAVY, Local(2)))])
    class TestLookahead(Contract, AlikeWorkers, Stackable):
        pass

:class:`~suite.battery.contract.Contract` is for every algorithm; the others for those of which their first line is
true. ``quadratic`` is the problem they run on, free for trajectories by hand and theorems too. Needs pytest.
"""
