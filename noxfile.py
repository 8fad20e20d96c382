"""The project's jobs, each in a fresh virtual environment pinned by ``ci/constraints.txt``.

nox -s suite                        the main job at --profile smoke
nox -s suite -- --profile reduced   arguments after -- go to ``sgd-suite reproduce``
nox -s tests -- --slow              arguments after -- go to pytest
nox -s processes                    tests over processes: the command line, and what is killed, lost or left waiting
nox -s faults                       sessions whose operations fail and whose power is cut; needs a C compiler
nox -s torch_rows                   torch's own tests of optimisers and schedulers, on ours
nox -s integrations                 tests with Lightning, Hugging Face's Trainer, JAX and the trackers installed
nox -s evidence                     tests of measures, drawings and texts over all stored runs
nox -s journeys                     every command over every artifact, and every command line of the pages
nox -s cluster                      trials on a real Slurm of two nodes on this machine
nox -s guard                        canaries, benchmark and gate, against the baselines of this machine class
nox -s gpu -- --data DIR            everything that a GPU is borrowed for, within a budget
nox -s nightly -- --data DIR        one training per paper on real data against the spread of its seeds
nox -s docs                         the documentation as a site, every link of it checked
nox -s pages                        the report in a browser, against the rules of accessibility
nox -s mutants -- --seed 1          how many of a hundred mutants of the papers' measures the tests notice
nox -s lock                         the hashes of what runners of one's own install, written again
nox -s wheel                        that an installed wheel does what the checkout does
nox -s sixth                        that a paper in a package of its own, installed, goes through every command
nox -s "torch(oldest)"              the tests with the oldest torch that the project takes, or the newest
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from functools import partial
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))
from suite.files import private_folder  # of the standard library alone, as the next
from suite.lazy import TESTED

nox.options.sessions = ["lint", "tests", "processes", "torch_rows", "evidence", "journeys", "suite"]
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"  # uv where it is there: seconds instead of minutes
nox.needs_version = ">=2024.4"

if kept := os.environ.get("NOX_ENVDIR"):  # what is in it is executed, whoever made it
    try:
        for folder in (Path(kept).absolute().parent, Path(kept)):
            private_folder(folder, "name another with NOX_ENVDIR (on a runner, with SGD_SUITE_HOME)")
    except OSError as error:
        sys.exit(str(error))

# Independent processes with one thread each beat one process with many, and keep sums in one order. Hundreds of them
# import torch, three times as fast from compiled modules: the first to import one keeps it, whatever the shell says
# (compiling all that is installed takes 20 s, most of it for what nothing imports).
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
ASKED = (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["all"])
OLDEST = tuple(f"{package.replace('>=', '==')}.*" for package in ASKED if package.startswith("torch"))
NEWEST = (f"torch<{TESTED[0]}.{TESTED[1]}", "torchvision", "numpy", "pandas")
MUTATION = ("cosmic-ray==8.7.0",)


def install(session: nox.Session, *extras: str) -> None:
    """The project in place, at exactly the versions of ci/constraints.txt."""
    session.install("-c", "ci/constraints.txt", "-e", f".[{','.join(('all', *extras))}]")


def install_locked(session: nox.Session) -> None:
    """The project in place on a runner of one's own: every file that is fetched has a hash in ci/runners.lock."""
    session.install("--require-hashes", "-r", "ci/runners.lock")
    session.install("--no-deps", "--no-build-isolation", "-e", ".")


def run_tests(session: nox.Session, *words: str) -> None:
    """Install, and call pytest with these arguments and the caller's."""
    install(session, "test")
    session.run("pytest", *words, *session.posargs, env=ENVIRONMENT)


@nox.session
def suite(session: nox.Session) -> None:
    """Run, check, draw and report: exit 0 when every verdict equals the committed one."""
    install(session)
    workers = str(min(os.cpu_count() or 1, 4))  # of two numbers the last one counts
    command = ["python", "-m", "suite", "reproduce", "--workers", workers, *session.posargs]
    session.run(*command, env=ENVIRONMENT)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but the slow ones and those with a session of their own, in three processes."""
    chosen = "not cluster and not processes and not evidence and not journeys and not torch_rows"
    run_tests(session, "-n", "3", "--dist", "worksteal", "-m", chosen)


@nox.session
def processes(session: nox.Session) -> None:
    """Tests that start, kill or wait for other processes; three at a time, since most of it is waiting."""
    run_tests(session, "-n", "3", "--dist", "worksteal", "-m", "processes and not cluster")


@nox.session
def faults(session: nox.Session) -> None:
    """Failing operations and power cuts below a store, a tenth of them; ``-- --every 1`` tries all."""
    install(session, "test")
    session.run("python", "tests/harness/faults.py", *(session.posargs or ["--every", "10"]), env=ENVIRONMENT)


@nox.session
def torch_rows(session: nox.Session) -> None:
    """What torch tests its own optimisers and schedulers for, on every optimiser of ``suite.optim``."""
    run_tests(session, "-n", "3", "-m", "torch_rows", "tests/optim")


@nox.session
def integrations(session: nox.Session) -> None:
    """The optimisers in trainers of others, what runs tell to trackers, and the plain loop beside JAX."""
    install(session, "test", "jax", "track")
    session.install("-c", "ci/constraints.txt", "pytorch-lightning", "transformers[torch]")
    files = ["tests/optim/test_trainers.py", "tests/harness/test_trackers.py", "tests/benchmarks/test_jax_sides.py"]
    session.run("pytest", "-n", "2", *files, *session.posargs, env=ENVIRONMENT)


@nox.session
def evidence(session: nox.Session) -> None:
    """Tests that measure or draw all stored runs, or as many made up; a file at a time, for what its tests share."""
    run_tests(session, "-n", "2", "--dist", "loadfile", "-m", "evidence and not processes")


@nox.session
def journeys(session: nox.Session) -> None:
    """Walks as a user walks: every command over every artifact, every command line of the pages; one process."""
    run_tests(session, "tests/journeys")


@nox.session
def cluster(session: nox.Session) -> None:
    """Trials on a real Slurm of two nodes, which must be installed; writes the table of cases."""
    run_tests(session, "tests/cluster", "--require", "cluster", "--cases", "tests/cluster/cases.md")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, formatting, types, the direction of imports, and the workflows."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("actionlint", *sorted(map(str, Path(".github/workflows").glob("*.yml"))))


@nox.session
def benchmark(session: nox.Session) -> None:
    """Time all workloads side by side into benchmark.json; arguments after -- go to ``pytest benchmarks``."""
    install(session, "test", "jax")
    session.run("pytest", "benchmarks", *session.posargs, env=ENVIRONMENT)


@nox.session
def guard(session: nox.Session) -> None:
    """Whether numbers moved or updates became slower; arguments after -- go to ``ci.guard``."""
    install_locked(session)
    session.run("python", "-m", "ci.guard", *session.posargs, env=ENVIRONMENT)


@nox.session
def gpu(session: nox.Session) -> None:
    """GPU tests, benchmarks, canaries and runs within a budget; arguments after -- go to ``ci.gpu``."""
    install_locked(session)
    session.run("python", "-m", "ci.gpu", *session.posargs, env=ENVIRONMENT)


@nox.session
def nightly(session: nox.Session) -> None:
    """One training per paper on real MNIST with a seed of the night; arguments after -- go to ``ci.nightly``."""
    install_locked(session)
    session.run("python", "-m", "ci.nightly", *session.posargs, env=ENVIRONMENT)


@nox.session
def claims(session: nox.Session) -> None:
    """Report and judge what is stored into report/; arguments after -- go to ``sgd-suite check``."""
    install_locked(session)
    store = session.posargs[session.posargs.index("--store") :][:2] if "--store" in session.posargs else []
    session.run("python", "-m", "suite", "report", "--out", "report", *store, env=ENVIRONMENT)
    check = ["python", "-m", "suite", "check", *session.posargs]
    with open("report/claims.json", "w", encoding="utf-8") as written:  # red claims fail the second call
        session.run(*check, "--json", env=ENVIRONMENT, stdout=written, success_codes=[0, 1])
    session.run(*check, env=ENVIRONMENT)


@nox.session
def summary(session: nox.Session) -> None:
    """Boards and the gate's table for a job's summary; arguments after -- go to ``ci.summary``."""
    install_locked(session)
    session.run("python", "-m", "ci.summary", *session.posargs, env=ENVIRONMENT)


@nox.session(venv_backend="none")
def issue(session: nox.Session) -> None:
    """Open an issue on a red night, or comment on the one that is open, from its artifact; nothing is installed."""
    session.run(sys.executable, "-m", "ci.issue", *session.posargs, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation with the report into site/: strict, links and anchors checked, nothing fetched."""
    install(session, "docs")
    session.run("python", "-m", "suite", "report", "--out", "docs/report", env=ENVIRONMENT)
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "true"})


@nox.session
def pages(session: nox.Session) -> None:
    """The report in the system's Chromium, against axe's rules."""
    install(session, "pages")
    session.run("python", "-m", "suite", "report", "--out", "report", env=ENVIRONMENT)
    session.run("python", "-m", "ci.accessibility", "--site", "report", *session.posargs, env=ENVIRONMENT)


@nox.session
def mutants(session: nox.Session) -> None:
    """How hard the tests are; arguments after -- go to ``ci.mutants``: ``--seed``, ``--count``, other modules."""
    install(session, "test")
    session.install(*MUTATION)
    session.run("python", "-m", "ci.mutants", *session.posargs, env=ENVIRONMENT)


@nox.session
def lock(session: nox.Session) -> None:
    """Write ci/*.lock again: the versions of ci/constraints.txt with the hashes of their files."""
    session.install("-c", "ci/constraints.txt", "uv")
    common = ["-c", "ci/constraints.txt", "--generate-hashes", "--universal", "--python-version", "3.11"]
    common += ["--no-annotate", "--no-header", "--quiet"]
    project = ["pyproject.toml", "--extra", "all", "--extra", "test", "--group", "build"]
    session.run("uv", "pip", "compile", "--group", "nox", *common, "-o", "ci/nox.lock")
    session.run("uv", "pip", "compile", *project, *common, "-o", "ci/runners.lock")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build sdist and both wheels, install them one after the other, and use them away from the checkout."""
    session.install("-c", "ci/constraints.txt", "build", "setuptools")
    built, pinned = Path(session.create_tmp()).resolve(), str(Path("ci/constraints.txt").absolute())
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(built))
    session.run("python", "-m", "build", "--no-isolation", "--wheel", "--outdir", str(built), "ci/evidence")
    newest = partial(max, key=lambda path: path.stat().st_mtime)
    made = newest(built.glob("sgd_scaling_suite-*.whl"))
    session.install("-c", pinned, str(made))
    session.chdir(built)
    session.run("python", "-c", "from suite.optim import SMA, DelayedSGD")  # with what every installation has
    session.run("sgd-suite", "list", success_codes=[2])
    session.install("-c", pinned, f"{made}[all]")
    session.run("sgd-suite", "--version")
    session.run("sgd-suite", "check", "isgd/fig5a", env=ENVIRONMENT, success_codes=[2])  # the runs come apart
    session.install(str(newest(built.glob("sgd_scaling_suite_evidence-*.whl"))))
    session.run("sgd-suite", "check", "isgd/fig5a", env=ENVIRONMENT)
    session.run("sgd-suite", "run", "isgd/fig1a", "--profile", "smoke", "--store", "wheel.store", env=ENVIRONMENT)
    session.run("sgd-suite", "figures", "isgd/fig5a", env=ENVIRONMENT)


@nox.session
def sixth(session: nox.Session) -> None:
    """Make a package for a sixth paper, install it in place, and take it through every command; some minutes."""
    install(session, "test")
    project = Path(session.create_tmp()).resolve() / "lookahead"
    shutil.rmtree(project, ignore_errors=True)
    session.run("pytest", "--slow", "tests/harness/test_sixth_paper.py", env=ENVIRONMENT)
    session.run("sgd-suite", "new-paper", "lookahead", "--into", str(project))
    session.install("-c", str(Path("ci/constraints.txt").absolute()), "setuptools")
    session.install("--no-deps", "--no-build-isolation", "-e", str(project))
    session.chdir(project)
    session.run("sgd-suite", "register", "lookahead", "--because", "rules as read from the paper", env=ENVIRONMENT)
    for command in ("run lookahead --profile reduced", "check lookahead", "figures lookahead"):
        session.run("sgd-suite", *command.split(), env=ENVIRONMENT)
    session.run(
        "sgd-suite", "export", "lookahead", "--out", "lookahead_paper/evidence/lookahead.zip", env=ENVIRONMENT
    )
    for command in ("refresh lookahead", "list lookahead", "report", "explain lookahead/fig1/ratio"):
        session.run("sgd-suite", *command.split(), env=ENVIRONMENT)
    session.run("pytest", ".", "lookahead_paper/published/lookahead.toml", env=ENVIRONMENT)


@nox.session
@nox.parametrize("pair", [nox.param(OLDEST, id="oldest"), nox.param(NEWEST, id="newest")])
def torch(session: nox.Session, pair: tuple[str, ...]) -> None:
    """The tests with another torch than the pinned one; the newest with the newest numpy and pandas too."""
    pins = Path("ci/constraints.txt").read_text(encoding="utf-8").splitlines()
    others = Path(session.create_tmp()) / "constraints.txt"
    freed = {re.split("[=<]", package)[0] for package in pair} | {"setuptools"}  # torch 2.11 asks for one below 82
    others.write_text("\n".join(line for line in pins if line.partition("==")[0] not in freed), encoding="utf-8")
    session.install("-c", str(others), "-e", ".[all,test]", *pair)
    session.run("pytest", "-n", "3", "--dist", "worksteal", *session.posargs, env=ENVIRONMENT)
