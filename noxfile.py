"""The project's jobs, each in a fresh virtual environment pinned by ``ci/constraints.txt``.

nox -s suite                        the main job at --profile smoke
nox -s suite -- --profile reduced   arguments after -- go to ``sgd-suite reproduce``
nox -s tests -- --slow              arguments after -- go to pytest
nox -s cluster                      trials on a real Slurm of two nodes on this machine
nox -s guard                        canaries, benchmark and gate, against the baselines of this machine class
nox -s prove                        the guard's own proof
nox -s gpu -- --data DIR            everything that a GPU is borrowed for, within a budget
"""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "tests", "suite"]
nox.options.reuse_existing_virtualenvs = True
nox.needs_version = ">=2024.4"

# Independent processes with one thread each beat one process with many, and keep sums in one order.
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


def install(session: nox.Session, *extras: str) -> None:
    """The project in place, at exactly the versions of ci/constraints.txt."""
    target = f".[{','.join(extras)}]" if extras else "."
    session.install("-c", "ci/constraints.txt", "-e", target)


@nox.session
def suite(session: nox.Session) -> None:
    """Run, check, draw and report: exit 0 when every verdict equals the committed one."""
    install(session)
    named = any(argument.startswith("--profile") for argument in session.posargs)
    profile = [] if named else ["--profile", "smoke"]
    session.run("python", "-m", "suite", "reproduce", *profile, *session.posargs, env=ENVIRONMENT)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those marked slow and those of a cluster, in two processes."""
    install(session, "test")
    session.run("pytest", "-n", "2", "--dist", "worksteal", "-m", "not cluster", *session.posargs, env=ENVIRONMENT)


@nox.session
def cluster(session: nox.Session) -> None:
    """Trials on a real Slurm of two nodes, which must be installed; writes the table of cases."""
    install(session, "test")
    cases = ["--cases", "tests/cluster/cases.md"]
    session.run("pytest", "tests/cluster", "--require", "cluster", *cases, *session.posargs, env=ENVIRONMENT)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, formatting and types."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def figures(session: nox.Session) -> None:
    """Draw every figure from the committed evidence, without running anything."""
    install(session)
    session.run("python", "-m", "suite", "figures", *session.posargs, env=ENVIRONMENT)


@nox.session
def benchmark(session: nox.Session) -> None:
    """Time all workloads side by side into benchmark.json; arguments after -- go to ``pytest benchmarks``."""
    install(session, "test")
    session.run("pytest", "benchmarks", *session.posargs, env=ENVIRONMENT)


@nox.session
def guard(session: nox.Session) -> None:
    """Whether numbers moved or updates became slower; arguments after -- go to ``ci.guard``."""
    install(session, "test")
    session.run("python", "-m", "ci.guard", *session.posargs, env=ENVIRONMENT)


@nox.session
def prove(session: nox.Session) -> None:
    """That the guard is silent on unchanged code and catches planted faults; some minutes."""
    install(session, "test")
    session.run("python", "-m", "ci.prove", *session.posargs, env=ENVIRONMENT)


@nox.session
def gpu(session: nox.Session) -> None:
    """GPU tests, benchmarks, canaries and runs within a budget; arguments after -- go to ``ci.gpu``."""
    install(session, "test")
    session.run("python", "-m", "ci.gpu", *session.posargs, env=ENVIRONMENT)


@nox.session
def claims(session: nox.Session) -> None:
    """Report and judge what is stored; arguments after -- go to ``sgd-suite check``."""
    install(session)
    session.run("python", "-m", "suite", "report", "--out", "report", env=ENVIRONMENT)
    session.run("python", "-m", "suite", "check", *session.posargs, env=ENVIRONMENT)
