"""How the code names things, and how large its pieces are: generic names, class names that occur twice,
comments, folders, files, functions.

    python -m tests.lexicon             one line for each top-level package, and all packages together
    python -m tests.lexicon --names     also each generic name that lives for more than five lines, and each
                                        class name that a package has twice

`tests/unit/test_lexicon.py` holds the figures to the limits below, so that the next change does not undo
them. Only the product and its benchmarks are counted, not the tests.
"""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]

GENERIC = frozenset(
    [
        "found",
        "said",
        "told",
        "kept",
        "came",
        "held",
        "seen",
        "heard",
        "asked",
        "made",
        "taken",
        "given",
        "gone",
        "wanted",
        "known",
        "says",
        "stands",
        "stood",
        "one",
        "of",
        "what",
        "there",
        "here",
        "it",
        "this",
        "that",
        "thing",
        "things",
    ]
)
"""Names that say nothing about their thing. A stranger asks "found what?" and has to read the function to
know.
"""

SHORT = 5
"""Lines a generic name may live for: a comprehension or two statements explain themselves."""

MOST_GENERIC = 0.01
"""Share of all bound names that may be generic, whatever they live for."""

MOST_FILES = 15
"""Files of Python that a folder may have without a reason."""

LONG_BODY = 50
"""Lines of a function's body above which it is long."""

MANY_PARAMETERS = 5
"""Positional parameters of a function above which it has many. `self` and `cls` are not counted."""

BEFORE = {
    "class names used more than once in a package": "27 %",
    "generic names": "5.5 %",
    "comments per 100 lines": "1.7",
    "folders above 15 files": "12",
    "lines of a file (median, 90 %, most)": "97, 250, 518",
    "lines of a body (median, 90 %, most)": "5, 16, 151",
    "bodies above 50 lines": "0.3 %",
    "functions with more than 5 positional parameters": "0.6 %",
}
"""The figures before the names were mended. Another script counted them, by the same rules."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)


@dataclass(frozen=True, kw_only=True)
class Binding:
    """A name that a statement gives to something, and the lines from there to its last use in the same
    scope.
    """

    name: str
    path: str
    line: int
    lines: int
    wide: bool = False
    """Whether other scopes use it: a field, or a function but the constructor `X.of(y)`."""

    @property
    def generic(self) -> bool:
        # A class has a capital. Constants, which have capitals only, are not counted.
        word = self.name.strip("_")
        return (word if word.isupper() else word.lower()) in GENERIC


@dataclass(frozen=True, kw_only=True)
class Body:
    """The size of one function."""

    name: str
    path: str
    line: int
    lines: int
    """From the first statement behind the docstring to the last line."""
    positional: int
    """Parameters that may be passed by position, without `self` and `cls`."""


@dataclass(frozen=True)
class Spread:
    """How large the pieces of one kind are, in lines."""

    median: int
    most_of_ten: int
    """Nine of ten are at most as large."""
    largest: int

    def __str__(self) -> str:
        return f"{self.median}, {self.most_of_ten}, {self.largest}"


def spread(lines: list[int]) -> Spread:
    ordered = sorted(lines)
    return Spread(ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10], ordered[-1])


@dataclass(kw_only=True)
class Package:
    """The figures of one top-level folder."""

    name: str
    bindings: list[Binding] = field(default_factory=list)
    classes: list[tuple[str, str]] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    files: list[int] = field(default_factory=list)
    """Lines of each file."""
    bodies: list[Body] = field(default_factory=list)
    comments: int = 0

    @property
    def lines(self) -> int:
        return sum(self.files)

    @property
    def generic(self) -> float:
        """Share of the bound names that are generic."""
        return sum(binding.generic for binding in self.bindings) / max(len(self.bindings), 1)

    @property
    def lasting(self) -> list[Binding]:
        """Generic names that live for more than SHORT lines, or that other scopes use."""
        return [name for name in self.bindings if name.generic and (name.wide or name.lines > SHORT)]

    @property
    def reused(self) -> dict[str, list[str]]:
        """Class names that occur in several files of the package, with these files."""
        paths = defaultdict(list)
        for name, path in self.classes:
            paths[name].append(path)
        return {name: places for name, places in paths.items() if len(places) > 1}

    @property
    def reuse(self) -> float:
        """Share of the class definitions whose name occurs more than once in the package."""
        return sum(map(len, self.reused.values())) / max(len(self.classes), 1)

    @property
    def large_folders(self) -> dict[str, int]:
        return {folder: count for folder, count in self.folders.items() if count > MOST_FILES}


def packages() -> dict[str, Package]:
    """Every top-level folder that has Python and is not the tests, by name."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    measured: dict[str, Package] = {}
    for path in sorted(tracked.stdout.split()):
        top, _, below = path.partition("/")
        if below and top != "tests" and (ROOT / path).exists():
            _measure(measured.setdefault(top, Package(name=top)), path)
    return measured


def _measure(package: Package, path: str) -> None:
    text = (ROOT / path).read_text()
    package.folders[str(Path(path).parent)] += 1
    package.files.append(text.count("\n"))
    package.comments += len(re.findall(r"^\s*#|\s{2}# ", text, re.MULTILINE))
    tree = ast.parse(text)
    package.bindings += _scope_bindings(tree, path)[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            package.classes.append((node.name, path))
        elif isinstance(node, _FUNCTIONS):
            package.bodies.append(_body(node, path))


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> Body:
    positional = [*function.args.posonlyargs, *function.args.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    last = function.end_lineno or function.lineno
    return Body(
        name=function.name,
        path=path,
        line=function.lineno,
        lines=last - statements[0].lineno + 1 if statements else 0,
        positional=len(positional),
    )


def _scope_bindings(scope: ast.AST, path: str) -> tuple[list[Binding], dict[str, int]]:
    """The names bound in a scope and in the scopes inside it, each with the lines that it lives for, and the
    last line that uses each name.
    """
    inner: list[Binding] = []
    first: list[tuple[str, int]] = []
    wide: set[str] = set()
    last: dict[str, int] = {}
    nodes = list(ast.iter_child_nodes(scope))
    if isinstance(scope, (*_FUNCTIONS, ast.Lambda)):
        first += [(argument.arg, argument.lineno) for argument in _arguments(scope.args)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, _SCOPES):
            bindings, uses = _scope_bindings(node, path)
            inner += bindings
            for name, line in uses.items():
                last[name] = max(last.get(name, 0), line)
            if not isinstance(node, ast.Lambda):
                first.append((node.name, node.lineno))
                wide |= {node.name} - {"of"}
            continue
        if isinstance(node, ast.AnnAssign) and isinstance(scope, ast.ClassDef):
            wide |= {name for name, _ in _names(node)}
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            last[name] = max(last.get(name, 0), node.lineno)
        first += _names(node)
        nodes += ast.iter_child_nodes(node)
    outer = [
        Binding(
            name=name,
            path=path,
            line=line,
            lines=max(last.get(name, line) - line + 1, 1),
            wide=name in wide,
        )
        for name, line in first
    ]
    return [*outer, *inner], last


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that one statement or clause binds, with its line."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.For, ast.AsyncFor, ast.comprehension, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    # A clause has no line of its own.
    line = min(
        (part.lineno for part in (node, *ast.iter_child_nodes(node)) if hasattr(part, "lineno")), default=0
    )
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            yield target.id, line
        elif isinstance(target, ast.Attribute):
            yield target.attr, line
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)


def together(measured: dict[str, Package]) -> dict[str, str]:
    """The figures of all packages together, as in `BEFORE`."""
    every = measured.values()
    names = [binding for package in every for binding in package.bindings]
    classes = sum(len(package.classes) for package in every)
    reused = sum(len(paths) for package in every for paths in package.reused.values())
    bodies = [body for package in every for body in package.bodies]
    lines = sum(package.lines for package in every)
    return {
        "class names used more than once in a package": f"{reused / classes:.1%}",
        "generic names": f"{sum(name.generic for name in names) / len(names):.1%}",
        "comments per 100 lines": f"{100 * sum(package.comments for package in every) / lines:.1f}",
        "folders above 15 files": str(sum(len(package.large_folders) for package in every)),
        "lines of a file (median, 90 %, most)": str(
            spread([size for package in every for size in package.files])
        ),
        "lines of a body (median, 90 %, most)": str(spread([body.lines for body in bodies])),
        "bodies above 50 lines": f"{sum(body.lines > LONG_BODY for body in bodies) / len(bodies):.1%}",
        "functions with more than 5 positional parameters": (
            f"{sum(body.positional > MANY_PARAMETERS for body in bodies) / len(bodies):.1%}"
        ),
    }


def main() -> None:
    measured = packages()
    print(
        f"{'package':22}{'names':>8}{'generic':>9}{'lasting':>9}{'classes':>9}{'reused':>8}{'comments':>10} "
        " folders above 15"
    )
    for package in measured.values():
        print(
            f"{package.name:22}{len(package.bindings):8}{package.generic:9.1%}{len(package.lasting):9}{len(package.classes):9}"
            f"{package.reuse:8.1%}{100 * package.comments / max(package.lines, 1):10.1f}  "
            + ", ".join(f"{folder} {count}" for folder, count in sorted(package.large_folders.items()))
        )
    print(f"\n{'all packages together':50}{'now':>16}{'before':>16}")
    for label, figure in together(measured).items():
        print(f"{label:50}{figure.replace('%', ' %'):>16}{BEFORE[label]:>16}")
    classes = Counter(name for package in measured.values() for name, _ in package.classes)
    again = sum(count for count in classes.values() if count > 1) / classes.total()
    print(f"\nIn the whole tree, {again:.1%} of the classes have a name that another class also has.")
    if "--names" in sys.argv:
        for package in measured.values():
            for binding in sorted(package.lasting, key=lambda binding: (binding.path, binding.line)):
                print(f"{binding.path}:{binding.line}: {binding.name} ({binding.lines} lines)")
            for name, paths in sorted(package.reused.items()):
                print(f"class {name}: {' '.join(paths)}")


if __name__ == "__main__":
    main()
