"""Fingerprints of code: what a function computes by, wherever it lies.

A definition is hashed as its syntax tree without docstrings, comments, annotations and its own name, each reference
to another definition of the project replaced by that one's hash. So a move, a split of a file or a new name for a
helper changes nothing, while an edit of anything that is reached changes it. References are followed through
imports (those inside functions included), attributes of modules, and texts of the form ``"package.module:name"``;
a module that is used as a value stands for all its definitions. The project is this one and the packages of all
registered papers. Code that is only reached through an object handed in at run time is not seen, nor is a data file.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from suite.runs import kept
from suite.runs.environment import ROOT

SCOPE = dict.fromkeys(("suite", "reference_impls", "paper_figures"), ROOT)  # package -> folder that holds it
PLACE = re.compile(r"\w+(?:\.\w+)*:\w+")
UNKNOWN = "unknown"  # the fingerprint of code that nobody can point at
DIGITS = 16  # hex digits of a fingerprint
SILENT = ("annotation", "returns", "ctx", "type_comment", "type_params", "lineno")

Place = tuple[str, str]  # module and definition; an empty definition is the module as a whole
Read = Callable[[str], str | None]  # path below the folder that holds its package, in POSIX form, to text


@dataclass
class Local:
    """A definition by itself: a text of its syntax with a mark for each reference, and what it refers to."""

    text: str
    references: list[Place] = field(default_factory=list)


class Module:
    """The definitions and imports of one file."""

    def __init__(self, name: str, text: str, package: bool):
        self.name = name
        self.base = name if package else name.rpartition(".")[0]
        self.definitions: dict[str, list[ast.AST]] = {}
        self.imports: dict[str, Place] = {}
        self._take(ast.parse(text).body)

    def _take(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.definitions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name):
                            self.definitions.setdefault(name.id, []).append(node.value)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= imported(node, self.base)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
                self._take(node.body + node.orelse)
            elif isinstance(node, ast.Try):
                self._take([*node.body, *(s for handler in node.handlers for s in handler.body), *node.orelse])


def imported(node: ast.Import | ast.ImportFrom, base: str) -> dict[str, Place]:
    """Local names that an import binds, with the module and the name there (empty: the module itself)."""
    if isinstance(node, ast.Import):
        return {a.asname or a.name.partition(".")[0]: (a.name if a.asname else a.name.partition(".")[0], "")
                for a in node.names}  # fmt: skip
    source = node.module or ""
    if node.level:
        above = base.split(".")[: len(base.split(".")) - node.level + 1]
        source = ".".join([*above, *([source] if source else [])])
    return {a.asname or a.name: (source, a.name) for a in node.names}


class Code:
    """The project's source as ``read`` gives it: the working files, or the tree of a commit."""

    def __init__(self, read: Read):
        self.read = read
        self._modules: dict[str, Module | None] = {}
        self._locals: dict[Place, Local] = {}
        self._hashes: dict[Place, str] = {}

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            stem = name.replace(".", "/")
            plain, package = self.read(f"{stem}.py"), self.read(f"{stem}/__init__.py")
            text = plain if plain is not None else package
            self._modules[name] = None if text is None else Module(name, text, plain is None)
        return self._modules[name]

    def resolve(self, module: str, name: str) -> Place | None:
        """Where a name of a module is defined, through re-exports; None outside the project."""
        if module.partition(".")[0] not in SCOPE:
            return None
        found = self.module(module)
        if not name:
            return (module, "") if found else None
        if found and name in found.definitions:
            return module, name
        if found and name in found.imports and found.imports[name] != (module, name):
            return self.resolve(*found.imports[name])
        return (f"{module}.{name}", "") if self.module(f"{module}.{name}") else None

    def local(self, place: Place) -> Local:
        """What stands at a place, read once."""
        if place not in self._locals:
            module = self.module(place[0])
            assert module is not None, place
            if place[1]:
                self._locals[place] = Reader(self, module).local(module.definitions[place[1]])
            else:
                names = sorted(module.definitions)
                self._locals[place] = Local(f"module {names}", [(module.name, name) for name in names])
        return self._locals[place]

    def closure(self, place: Place) -> set[Place]:
        """The definitions that a place reaches, itself included."""
        seen, todo = {place}, [place]
        while todo:
            for reference in self.local(todo.pop()).references:
                if reference not in seen:
                    seen.add(reference)
                    todo.append(reference)
        return seen

    def fingerprint(self, *places: str) -> str:
        """Of what the named definitions ("package.module:name") compute by. Raises KeyError for an unknown one."""
        roots = []
        for text in places:
            module, _, name = text.partition(":")
            if (root := self.resolve(module, name)) is None:
                raise KeyError(text)
            roots.append(root)
        for root in roots:
            self._hash(self.closure(root))
        return _digest(*(self._hashes[root] for root in roots))[:DIGITS]

    def _hash(self, places: set[Place]) -> None:
        """Hash definitions after those they refer to; those that refer to each other by rounds of refinement."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(places)
        graph.add_edges_from((place, other) for place in places for other in self.local(place).references)
        for group in list(networkx.strongly_connected_components(graph)):  # each after all that it refers to
            if group <= self._hashes.keys():
                continue
            self._hashes |= dict.fromkeys(group, "")
            for _ in range(len(group) + 1 if len(group) > 1 else 1):
                self._hashes |= {place: self._with_references(self.local(place)) for place in group}

    def _with_references(self, local: Local) -> str:
        return _digest(local.text, *(self._hashes[reference] for reference in local.references))


class Reader:
    """Writes one definition as text: its syntax, with local names as they are and references by number."""

    def __init__(self, code: Code, module: Module):
        self.code, self.module = code, module
        self.words: list[str] = []
        self.references: list[Place] = []
        self.bound: set[str] = set()
        self.imports: dict[str, Place] = {}
        self.inner: set[str] = set()  # imported inside the definition: before the module's own names

    def local(self, nodes: list[ast.AST]) -> Local:
        for node in nodes:
            self.imports, self.inner, self.bound = dict(self.module.imports), set(), set()
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    self.imports |= imported(inner, self.module.base)
                    self.inner |= imported(inner, self.module.base).keys()
                elif isinstance(inner, ast.arg):
                    self.bound.add(inner.arg)
                elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    self.bound.add(inner.id)
                elif isinstance(inner, ast.FunctionDef | ast.ClassDef) and inner is not node:
                    self.bound.add(inner.name)
            self._visit(node, own=True)
        return Local(" ".join(self.words), self.references)

    def _place(self, name: str) -> Place | None:
        """What a global name of this definition means, of the project's own."""
        if name in self.bound and name not in self.inner:
            return None
        if name in self.inner or (name in self.imports and name not in self.module.definitions):
            return self.code.resolve(*self.imports[name])
        return (self.module.name, name) if name in self.module.definitions else None

    def _refer(self, place: Place) -> None:
        self.words.append(f"@{len(self.references)}")
        self.references.append(place)

    def _visit(self, node: ast.AST, own: bool = False) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Name) and (place := self._place(node.id)):
            self._refer(place)
            return
        if isinstance(node, ast.Name) and node.id not in self.bound and node.id in self.imports:
            self.words.append(".".join(filter(None, self.imports[node.id])))  # of another package, without its alias
            return
        if isinstance(node, ast.Attribute) and self._attribute(node):
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            module, _, name = node.value.partition(":")
            if place := self.code.resolve(module, name):
                self._refer(place)
                return
        self.words.append(type(node).__name__)
        for name, value in ast.iter_fields(node):
            if name in SILENT or (name == "name" and own):
                continue
            for item in _without_docstring(node, value) if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    self._visit(item)
                elif item is not None:
                    self.words.append(repr(item))
        self.words.append(";")

    def _attribute(self, node: ast.Attribute) -> bool:
        """Follow ``module.name``; False for an attribute of anything else."""
        names, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or (place := self._place(inner.id)) is None or place[1]:
            return False
        module, rest = place[0], names[::-1]
        while rest and (found := self.code.resolve(module, rest[0])):
            rest = rest[1:]
            if found[1]:
                self._refer(found)
                self.words.extend(f".{name}" for name in rest)
                return True
            module = found[0]
        return False


def _without_docstring(node: ast.AST, items: list) -> Iterator:
    documented = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
    for place, item in enumerate(items):
        text = (
            isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
        )
        if not (text and documented and place == 0 and items is getattr(node, "body", None)):
            yield item


def include(package: str, folder: Path) -> None:
    """Let the code of another package count, which lies in ``folder``: that of a paper from elsewhere."""
    SCOPE.setdefault(package, folder)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def working_files(path: str) -> str | None:
    """A file of the project, or of a package whose code counts, as it lies on disk."""
    file = SCOPE.get(path.partition("/")[0].removesuffix(".py"), ROOT) / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


@cache
def present() -> Code:
    """The code of this process."""
    return Code(working_files)


def fingerprint(*places: str) -> str:
    """``Code.fingerprint`` of the code of this process, read from memory while no source file has changed.

    Raises KeyError as that does.
    """
    where = kept.place("fingerprints", _sources(tuple(SCOPE.items())), _digest(*places)[:DIGITS])
    if (known := kept.recall(where)) is not None:
        return known.decode()
    found = present().fingerprint(*places)
    kept.keep(where, found.encode())
    return found


@cache
def _sources(scope: tuple[tuple[str, Path], ...]) -> str:
    """A digest of every source file of these packages, each with the folder that holds it."""
    files = sorted({path for package, folder in scope for path in (folder / package).rglob("*.py")})
    digests = [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
    return _digest(sys.version, repr(digests))[:DIGITS]
