"""Slurm: an array of workers that may be requeued at any time."""

from __future__ import annotations

import getpass
import math
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence

from suite.engines.engine import INDEX, VARIABLE, EngineError, Job

# --signal reaches the batch shell alone, which passes it on as TERM: a worker leaves a checkpoint and exits with 143.
# Slurm requeues what a node's death or a preemption ended; what its time limit ends, the script requeues itself.
SCRIPT = """\
#!/bin/bash
{directives}
worker=
trap '[ -z "$worker" ] || kill -TERM "$worker"' TERM {signal}
run() {{
  "$@" & worker=$!
  while wait "$worker"; code=$?; kill -0 "$worker" 2>/dev/null; do :; done
  if [ "$code" -gt 128 ]; then wait "$worker" 2>/dev/null; last=$?; [ "$last" -eq 127 ] || code=$last; fi
  worker=
  [ "$code" -eq 0 ] && return
  [ "$code" -lt 128 ] && failed=$code && return
  task="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
  if [ "$code" -eq 143 ] && [ "$(squeue -h -j "$task" -o %T)" = RUNNING ]; then scontrol requeue "$task"; fi
  exit "$code"
}}
failed=0
{setup}
{commands}
exit "$failed"
"""


class Slurm:
    """Through ``sbatch``, ``squeue`` and ``scontrol``.

    Options are those of ``sbatch`` by their long names (``partition = "gpu"``, ``exclusive = true``), ``signal`` with
    another default, and ``setup``, a list of shell lines that come first (``module load ...``).
    """

    def script(self, job: Job) -> str:
        directives = {
            "job-name": job.name,
            "array": f"0-{job.workers - 1}",
            "cpus-per-task": job.cores,
            "mem": f"{max(1, math.ceil(job.memory / 2**20))}M" if job.memory else None,
            "gpus-per-task": job.gpus or None,
            "ntasks": 1 if job.gpus else None,
            "dependency": "afterany:" + ":".join(job.after) if job.after else None,
            "output": str(job.logs / "%A_%a.txt"),
            "signal": "B:TERM@60",
        }
        directives |= {name: value for name, value in job.options.items() if name != "setup"}
        for name, value in directives.items():
            # A backslash is an escape to sbatch within quotes too, and keeps Slurm from filling in a path's %A.
            plain = not isinstance(value, list | dict) and not re.search(r"[\n\\]", str(value))
            if not plain or not re.fullmatch(r"[a-z][a-z-]*", name):
                raise EngineError(f"slurm: {name} = {value!r} is no option of sbatch; see `man sbatch`")
        signal = re.fullmatch(r"R?B:(\w+)(@\d+)?", str(directives["signal"] or "B:TERM"))
        if not signal:
            raise EngineError(f'slurm: signal = {directives["signal"]!r} reaches no worker; say "B:USR1@60"')
        setup = job.options.get("setup", [])
        if not (isinstance(setup, list) and all(isinstance(line, str) for line in setup)):
            raise EngineError(f'slurm: setup = {setup!r} must be a list of shell lines: ["module load python"]')
        lines = ["--requeue", "--open-mode=append"]
        given = {name: value for name, value in directives.items() if value not in (None, "") and value is not False}
        # sbatch splits a line at spaces, minds quotes as a shell does, and refuses a value of a flag.
        lines += [f"--{n}" if value is True else f"--{n}={shlex.quote(str(value))}" for n, value in given.items()]
        return SCRIPT.format(
            directives="\n".join(f"#SBATCH {line}" for line in lines),
            signal=signal[1],
            setup="\n".join(setup),
            commands="\n".join("run " + " ".join(map(_quoted, command)) for command in job.commands),
        )

    def submit(self, job: Job) -> str:
        return _call("sbatch", "--parsable", text=self.script(job)).partition(";")[0]

    def states(self, jobs: Sequence[str]) -> Mapping[str, int]:
        if not jobs:
            return {}
        told = _call("squeue", "--noheader", "--array", "--format=%F %T", f"--user={getpass.getuser()}")
        rows = [line.split() for line in told.splitlines()]
        return Counter(state.lower() for name, state in rows if name in set(jobs))


def _quoted(word: str) -> str:
    """A word for the shell, in which ``{index}`` and ``{env:NAME}`` are filled in where it runs."""
    quoted = shlex.quote(word).replace(INDEX, "'\"$SLURM_ARRAY_TASK_ID\"'")
    return VARIABLE.sub(r"""'"$\1"'""", quoted)


def _call(*command: str, text: str | None = None) -> str:
    """What a command of Slurm's says. Raises EngineError with its complaint."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    except FileNotFoundError as error:
        raise EngineError(
            f"slurm: {command[0]} is not installed here; run this on a login node of a cluster"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"slurm: {command[0]} did not answer within 120 s; is the controller up?") from error
    if done.returncode:
        raise EngineError(f"slurm: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout.strip()
