"""The code behind the committed runs: ``python -m ci.evidence_code`` writes ``paper_figures/evidence/code.json``.

Runs made before runs recorded a fingerprint of their experiment name a revision and a hash of files. From the commit
of that name, if its tree has that hash, the fingerprint is computed here; a run made from a changed tree, or from a
commit that the history lacks, is of unknown code and has no line. The sealed archives stay as they are.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from functools import cache

from suite.papers.evidence import committed, folders
from suite.runs.fingerprint import ROOT, Code, Place

TABLE = folders()[0] / "code.json"


class Tree:
    """The Python files of a commit."""

    def __init__(self, revision: str):
        self.revision = revision
        listed = git("ls-tree", "-r", "--name-only", revision)
        self.paths = {path for path in listed.splitlines() if path.endswith(".py")}

    @cache  # noqa: B019 -- a dozen trees, for the length of a script
    def read(self, path: str) -> str | None:
        return git("show", f"{self.revision}:{path}") if path in self.paths else None

    def files_hash(self) -> str:
        """The hash of files as revisions before fingerprints recorded it."""
        tree = ast.parse(self.read("suite/environment.py") or "")
        listed = next(
            (n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "SHOWING"), None
        )
        shown = set()
        for node in ast.walk(listed) if listed else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                shown.add(f"suite/{node.value}.py")
            elif isinstance(node, ast.Constant) and str(node.value).endswith(".py"):
                shown.add(str(node.value))
        digest = hashlib.sha256()
        for package in ("reference_impls", "suite"):
            for path in sorted(p for p in self.paths if p.startswith(f"{package}/") and p not in shown):
                digest.update(path.encode() + b"\0" + (self.read(path) or "").encode() + b"\0")
        return digest.hexdigest()[:16]


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout


def bodies(code: Code, tree: Tree) -> dict[str, tuple[str, ...]]:
    """The functions behind each experiment of a tree: what computes one run, and what computes several together."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(tree.paths):
        if not path.startswith(("paper_figures/", "suite/")):
            continue
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = code.module(name)
        assert module is not None
        for key, call in experiments(module.definitions):
            wanted = [call.args[0] if call.args else None]
            wanted += [call.args[5]] if len(call.args) > 5 else []
            wanted += [k.value for k in call.keywords if k.arg in ("load", "together")]
            found[key] = tuple(filter(None, (body(code, name, node) for node in wanted)))
    return found


def experiments(definitions: dict[str, list[ast.AST]]) -> list[tuple[str, ast.Call]]:
    """Calls of ``Experiment`` that stand as values of a mapping, and the one of plain training."""
    found = []
    for name, nodes in definitions.items():
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict):
                    pairs = [(k, v) for k, v in zip(inner.keys, inner.values, strict=True)]
                    found += [(k.value, v) for k, v in pairs if isinstance(k, ast.Constant) and is_experiment(v)]
            if name == "TRAIN" and is_experiment(node):
                found.append(("train", node))
    return found


def is_experiment(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Experiment"


def body(code: Code, module: str, node: ast.expr | None) -> str | None:
    """The function that a thunk imports and returns."""
    if isinstance(node, ast.Call) and all(isinstance(a, ast.Constant) for a in node.args):
        words = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        if len(words) == 1:  # lazily("package.module:name")
            return words[0]
        return f"{module.rpartition('.')[0]}.{words[0]}:{words[1]}"  # a package's own loader of (module, name)
    if not isinstance(node, ast.Name):
        return None
    place: Place | None = code.resolve(module, node.id)
    while place:
        thunk = next(n for n in code.module(place[0]).definitions[place[1]])
        returned = [n for n in ast.walk(thunk) if isinstance(n, ast.Return)]
        references = code.local(place).references
        if len(returned) == 1 and isinstance(returned[0].value, ast.Name | ast.Attribute) and len(references) == 1:
            return ":".join(references[0])
        return None
    return None


def main() -> None:
    code_of: dict[str, tuple[Code, Tree, dict[str, tuple[str, ...]], str]] = {}
    lines: dict[str, dict[str, str]] = {}
    unknown = 0
    for archive in committed():
        for run_id in sorted(archive.ids()):
            run = archive.read(run_id)
            about = run.environment
            if "code" in about:
                continue
            revision = about.get("revision", "")
            if revision not in code_of and not about.get("dirty"):
                try:
                    tree = Tree(revision)
                except subprocess.CalledProcessError:
                    unknown += 1
                    continue
                code = Code(tree.read)
                code_of[revision] = code, tree, bodies(code, tree), tree.files_hash()
            if about.get("dirty") or code_of[revision][3] != about["source"]:
                unknown += 1
                continue
            code, tree, known, _ = code_of[revision]
            experiment = run.spec.experiment
            assert known[experiment], f"{experiment} of {revision}: no body found"
            lines[run_id] = {"code": code.fingerprint(*known[experiment]), "revision": revision[:12]}
    rows = ",\n".join(f"{json.dumps(run_id)}: {json.dumps(lines[run_id])}" for run_id in sorted(lines))
    TABLE.write_text(f"{{\n{rows}\n}}\n")
    print(f"{len(lines)} runs of known code, {unknown} of unknown code")


if __name__ == "__main__":
    main()
