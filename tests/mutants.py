"""Which tests hold what no cheaper test holds: `python -m tests.mutants FILE... --tests PATH...`.

A mutant is the product with one small change in one function: another comparison, a condition turned round, a
number one higher, a call left out, another operator in a piece of SQL. The tests that call the function run
against it, the cheapest first, until one fails: that test *kills* the mutant. So a test that kills nothing
holds nothing, as far as these mutants go, that the cheaper tests do not hold. A mutant that no test kills is
a survivor: either it changes nothing that matters, or no test holds that line.

    python -m tests.mutants workbench/verify/windows/reach.py --tests tests/unit/workbench/verify --most 60
    python -m tests.mutants --packages                  # every package of the product, its own unit tests
    python -m tests.mutants --packages topics producers --most 40
    python -m tests.mutants --packages --minutes 3      # a sample of every package, three minutes each

With `--minutes` a package takes about so long. Half of it goes to the tests, whose files come in a drawn
order. Those that had no time to run are counted, but hold nothing. So a test that is idle in such a sample is
idle, and a mutant that survives may be noticed by a test that had no time.

What a package's mutants gave is kept in build/mutants and is not tried again while it is there. The last
lines of `--packages` are a table of all packages.

Each mutant runs in a forked process, which changes the code of the function in place. Code outside of
functions is not changed, and neither are kernels, because each mutant of one would have to be compiled.
Nothing on disk changes.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import multiprocessing
import os
import random
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "mutants"
SUITE = ["-m", "not more and not long"]
"""What `make test` runs of a package's tests."""
FEW = 5
"""A test that kills nothing is idle if at least so many mutants of functions that it calls were tried."""

COMPILED = frozenset(["kernel", "inlined", "njit", "intrinsic"])
"""Decorators of functions that are compiled."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult,
}  # fmt: skip
SQL = (
    (" <= ", " < "), (" < ", " <= "), (" >= ", " > "), (" > ", " >= "), (" = ", " <> "), (" <> ", " = "),
    (" AND ", " OR "), (" OR ", " AND "), ("min(", "max("), ("max(", "min("), (" + ", " - "), (" - ", " + "),
    ("IS NULL", "IS NOT NULL"), ("IS NOT NULL", "IS NULL"), ("ANTI JOIN", "SEMI JOIN"),
    ("SEMI JOIN", "ANTI JOIN"),
)  # fmt: skip
"""What is changed in texts that hold SQL, at each place."""
_SQL = re.compile(r"\b(SELECT|WHERE|FROM|AND|OR|coalesce|CASE)\b")


class Mutant(NamedTuple):
    """One change in one function."""

    file: str
    """The file."""
    line: int
    """The changed line."""
    change: str
    """What is done there."""
    function: str
    """Qualified name of the function."""
    code: CodeType
    """The function's code with the change."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.change} (in {self.function})"


_NOWHERE = "(nowhere)"
"""In place of a killer: no function has the mutant's place. Such a mutant is not counted."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: str
    """The mutant in words."""
    killer: str | None
    """The cheapest test that failed. None: no test did."""
    tests: int
    """Tests that ran."""
    callers: int = 0
    """Tests that call the function. Some of them had no time to run, if they are more."""

    @property
    def survived(self) -> bool:
        """Whether every test that calls the function ran, and none failed."""
        return self.killer is None and self.tests >= self.callers > 0


class Judgement(NamedTuple):
    """What became of the mutants of some files."""

    verdicts: list[Verdict]
    """One for each mutant that was tried."""
    seconds: dict[str, float]
    """Test -> what it takes, s, while it is listened to."""
    tried: dict[str, int]
    """Test -> mutants of functions that it calls."""
    tests: int
    """Tests that there are. Those without seconds had no time to run."""
    called: int
    """Mutants that can be made of functions that a test calls."""
    uncalled: int
    """Mutants that can be made of functions that no test calls."""

    @property
    def kills(self) -> Counter[str]:
        """Test -> mutants that it was the first to notice."""
        return Counter(verdict.killer for verdict in self.verdicts if verdict.killer is not None)

    @property
    def survivors(self) -> list[Verdict]:
        """Mutants that no test noticed, of functions that some test calls."""
        return [verdict for verdict in self.verdicts if verdict.survived]

    @property
    def idle(self) -> list[str]:
        """Tests that killed none of `FEW` mutants or more, the longest first."""
        kills = self.kills
        names = [name for name, count in self.tried.items() if count >= FEW and not kills[name]]
        return sorted(names, key=lambda name: -self.seconds.get(name, 0.0))


class Package(NamedTuple):
    """Files of the product, and the unit tests that lie where they lie."""

    name: str
    """The folder below tests/unit."""
    files: list[Path]
    """Every module of the folder. Folders below it that have tests of their own are packages of their own."""
    tests: list[str]
    """Files of tests."""


def packages() -> dict[str, Package]:
    """Every folder of the product that has a folder of unit tests of the same name."""
    unit = ROOT / "tests" / "unit"
    folders: dict[str, Path] = {}
    for folder in sorted({test.parent for test in unit.rglob("test_*.py")} - {unit}):
        name = str(folder.relative_to(unit))
        place = next((top / name for top in (ROOT / "evenflow", ROOT) if (top / name).is_dir()), None)
        if place is not None:
            folders[name] = place
    result: dict[str, Package] = {}
    for name, place in folders.items():
        below = [other for other in folders.values() if place in other.parents]
        files = [
            file.relative_to(ROOT)
            for file in sorted(place.rglob("*.py"))
            if not any(other in file.parents for other in below)
        ]
        tests = [str(test.relative_to(ROOT)) for test in sorted((unit / name).glob("test_*.py"))]
        result[name] = Package(name, files, tests)
    return result


class Place(NamedTuple):
    """Where a mutant can be made."""

    file: Path
    """The file."""
    function: int
    """Which of the file's outermost functions."""
    change: int
    """Which of the function's changes."""
    line: int
    """The changed line."""
    words: str
    """What is done there."""
    name: str
    """Qualified name of the function."""

    @property
    def caller_of(self) -> str:
        """The function's name among those that tests call."""
        return f"{self.file.resolve()}:{self.name}"

    def mutant(self) -> Mutant:
        """The mutant, compiled."""
        tree = ast.parse(self.file.read_text())
        function = _outermost(tree)[self.function]
        _changes(function)[self.change][2]()
        code = _code_of(function, _compiled_module(tree, self.file))
        return Mutant(str(self.file), self.line, self.words, self.name, code)


def places(file: Path) -> list[Place]:
    """Every place of a file's functions, in the order of its lines."""
    tree = ast.parse(file.read_text())
    module = _compiled_module(tree, file)
    result = [
        Place(file, number, change, line, words, _code_of(function, module).co_qualname)
        for number, function in enumerate(_outermost(tree))
        for change, (line, words, _) in enumerate(_changes(function))
    ]
    return sorted(result, key=lambda place: place.line)


def _compiled_module(tree: ast.Module, file: Path) -> CodeType:
    return compile(ast.fix_missing_locations(tree), str(file.resolve()), "exec")


def _code_of(function: ast.FunctionDef, module: CodeType) -> CodeType:
    return next(code for code in codes(module) if code.co_firstlineno == _first_line(function))


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of every function and class in this code, outer ones first."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _outermost(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions and methods that are in no other function, but for compiled ones."""
    result: list[ast.FunctionDef] = []

    def look(body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body)
            elif isinstance(node, ast.FunctionDef) and not _compiled(node):
                result.append(node)

    look(tree.body)
    return result


def _compiled(function: ast.FunctionDef) -> bool:
    names = {
        name.id
        for decorator in function.decorator_list
        for name in ast.walk(decorator)
        if isinstance(name, ast.Name)
    }
    return bool(names & COMPILED)


Change = tuple[int, str, Callable[[], None]]
"""(line, what is done, do it in the tree that the function is of)."""


def _changes(function: ast.FunctionDef) -> list[Change]:
    """What can be changed in a function. The same tree gives the same changes in the same order."""
    skipped = {
        id(node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    # The texts of an f-string are looked at together.
    skipped |= {
        id(part) for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    changes: list[Change] = []
    for statement in function.body:
        for node in ast.walk(statement):
            if id(node) not in skipped:
                changes += _changes_of(node)
    return changes


def _changes_of(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            other = COMPARISONS[type(op)]
            yield (
                node.lineno,
                f"{type(op).__name__} -> {other.__name__}",
                lambda: node.ops.__setitem__(0, other()),
            )
        case ast.BinOp() if type(node.op) in OPERATORS:
            operator = OPERATORS[type(node.op)]
            change = f"{type(node.op).__name__} -> {operator.__name__}"
            yield node.lineno, change, lambda: setattr(node, "op", operator())
        case ast.BoolOp():
            turned: type[ast.boolop] = ast.Or if isinstance(node.op, ast.And) else ast.And
            yield (
                node.lineno,
                f"{type(node.op).__name__} -> {turned.__name__}",
                lambda: setattr(node, "op", turned()),
            )
        case ast.If() | ast.IfExp() | ast.While():
            test = node.test
            yield (
                node.lineno,
                "a condition turned round",
                lambda: setattr(node, "test", ast.UnaryOp(op=ast.Not(), operand=test)),
            )
        case ast.Constant(value=bool() as value):
            yield node.lineno, f"{value} -> {not value}", lambda: setattr(node, "value", not value)
        case ast.Constant(value=int() as value):
            yield node.lineno, f"{value} -> {value + 1}", lambda: setattr(node, "value", value + 1)
        case ast.Expr(value=ast.Call()):
            yield (
                node.lineno,
                "a call left out",
                lambda: setattr(node, "value", ast.Constant(value=None)),
            )
        case ast.JoinedStr(values=values) if _is_sql(node):
            for part in values:
                if isinstance(part, ast.Constant):
                    yield from _changes_of_sql(part)
        case ast.Constant(value=str() as text) if _SQL.search(text):
            yield from _changes_of_sql(node)


def _is_sql(text: ast.JoinedStr) -> bool:
    return bool(
        _SQL.search(" ".join(str(part.value) for part in text.values if isinstance(part, ast.Constant)))
    )


def _changes_of_sql(node: ast.Constant) -> Iterator[Change]:
    text = str(node.value)
    for before, after in SQL:
        for match in re.finditer(re.escape(before), text):
            changed = text[: match.start()] + after + text[match.end() :]
            line = node.lineno + text[: match.start()].count("\n")
            yield line, f"{before!r} -> {after!r}", partial(setattr, node, "value", changed)


class _Calls:
    """A plugin of pytest: which tests call which functions of some files, and what a test takes."""

    def __init__(self, files: Sequence[Path], *, seed: int, limit: float) -> None:
        self._files = {str(file.resolve()) for file in files}
        self._seed, self._limit = seed, limit
        self._end = float("inf")
        self._test = ""
        self.tests = 0
        self.callers: dict[str, set[str]] = defaultdict(set)
        self.seconds: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function."""
        if event == "call" and frame.f_code.co_filename in self._files:
            # A function within another is part of it.
            outermost = frame.f_code.co_qualname.partition(".<locals>")[0]
            self.callers[f"{frame.f_code.co_filename}:{outermost}"].add(self._test)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin to count time. If there may be too little of it, the files come in a drawn order."""
        self.tests = len(session.items)
        self._end = time.monotonic() + self._limit
        if self._limit < float("inf"):
            files = sorted({item.path for item in session.items})
            random.Random(self._seed).shuffle(files)
            session.items.sort(key=lambda item: files.index(item.path))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Listen while a test runs, its fixtures included."""
        if time.monotonic() > self._end:
            item.session.shouldstop = "the time for listening is over"
        self._test = item.nodeid
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # None ends it

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a part of the test took."""
        self.seconds[report.nodeid] += report.duration


class _FirstFailure:
    """A plugin of pytest: tests in the given order, until one fails or the time is over."""

    def __init__(self, order: Sequence[str], seconds: Mapping[str, float], limit: float) -> None:
        self._place = {name: place for place, name in enumerate(order)}
        self._seconds, self._left = seconds, limit
        self.killer: str | None = None
        self.tests = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The cheapest first."""
        items.sort(key=lambda item: self._place.get(item.nodeid, len(self._place)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failure, which ends the run."""
        self.tests += report.when == "teardown"
        if report.failed and self.killer is None:
            self.killer = report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Stop where the next test would take more than is left."""
        self._left -= self._seconds.get(item.nodeid, 0.0)
        if self._left < 0:
            item.session.shouldstop = "the time for this mutant is over"
        return (yield)


def _quiet(words: Sequence[str], plugin: object) -> None:
    """Run pytest in this process and print nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    pytest.main(["-q", "-n0", "-p", "no:cacheprovider", "--hypothesis-seed=0", *words], plugins=[plugin])


def _callers(files: Sequence[Path], tests: Sequence[str], seed: int, limit: float, to: Connection) -> None:
    plugin = _Calls(files, seed=seed, limit=limit)
    _quiet(tests, plugin)
    callers = {name: sorted(tests) for name, tests in plugin.callers.items()}
    to.send((callers, dict(plugin.seconds), plugin.tests))


def _verdict(
    mutant: Mutant, order: Sequence[str], seconds: Mapping[str, float], limit: float, to: Connection
) -> None:
    plugin = _FirstFailure(order, seconds, limit)
    gc.unfreeze()  # tests/conftest.py freezes all that was collected, and what is frozen is not listed
    # Functions within the function may live already: a command, once its module has registered it.
    changed = {(code.co_qualname, code.co_firstlineno): code for code in (mutant.code, *codes(mutant.code))}
    functions = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__code__.co_filename == mutant.code.co_filename
        and (function.__code__.co_qualname, function.__code__.co_firstlineno) in changed
    ]
    for function in functions:
        function.__code__ = changed[function.__code__.co_qualname, function.__code__.co_firstlineno]
    gc.freeze()
    if not functions:
        to.send(Verdict(str(mutant), _NOWHERE, 0))
        return
    _quiet(["-x", *order], plugin)
    to.send(Verdict(str(mutant), plugin.killer, plugin.tests))


def _forked(work: Callable[..., None], *arguments: Any, patience: float | None = None) -> Any:
    """What the work sends from a process of its own. None if it sends nothing in this time."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work, args=(*arguments, there))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(patience) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def judge(
    files: Sequence[Path],
    tests: Sequence[str],
    *,
    most: int,
    seed: int,
    limit: float,
    say: Callable[[str], None],
    called: bool = False,
    minutes: float = float("inf"),
) -> Judgement:
    """What becomes of at most so many mutants, in at most about so many minutes.

    limit: seconds of tests for one mutant. called: of functions that a test calls, and of no others.
    """
    end = time.monotonic() + 60 * minutes
    # The tests are imported here, once, and run in forks: threads of libraries would not live through a fork.
    pytest.main(["-q", "-n0", "--collect-only", "-p", "no:cacheprovider", *tests, "--no-header", "-qq"])
    heard = _forked(_callers, files, tests, seed, 30 * minutes)
    if heard is None:
        raise SystemExit("the tests could not be run: does pytest run them?")
    callers, seconds, collected = heard
    possible = [place for file in files for place in places(file)]
    within = [place for place in possible if place.caller_of in callers]
    chosen = within if called else possible
    if len(chosen) > most or minutes < float("inf"):
        chosen = random.Random(seed).sample(chosen, min(len(chosen), most))
    verdicts = []
    tried: Counter[str] = Counter()
    for place in chosen:
        if time.monotonic() > end:
            break
        mutant = place.mutant()
        order = sorted(callers.get(place.caller_of, []), key=lambda name: seconds.get(name, 0.0))
        if not order:
            verdict = Verdict(str(mutant), None, 0)
        else:
            # A mutant that never ends is killed by its time: nobody would have waited for that test.
            verdict = _forked(_verdict, mutant, order, seconds, limit, patience=3 * limit + 30) or Verdict(
                str(mutant), "(time)", len(order)
            )
            verdict = verdict._replace(callers=len(order))
        if verdict.killer != _NOWHERE:
            verdicts.append(verdict)
            tried.update(order)
        say(json.dumps(verdict))
    return Judgement(verdicts, seconds, dict(tried), collected, len(within), len(possible) - len(within))


def summary(judgement: Judgement) -> Iterator[str]:
    """Lines: how many mutants were killed, which tests killed them, which killed none, which mutants
    survived.
    """
    verdicts, seconds, kills = judgement.verdicts, judgement.seconds, judgement.kills
    yield f"{len(verdicts)} mutants, {sum(kills.values())} killed"
    files: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        files[test.partition("::")[0]].append(test)
    yield f"{'kills':>6} {'tests':>6} {'killing':>8} {'seconds':>8} {'idle s':>8}  file"
    for file, names in sorted(files.items(), key=lambda item: -sum(seconds[name] for name in item[1])):
        idle = sum(seconds[name] for name in names if not kills[name])
        yield (
            f"{sum(kills[name] for name in names):6} {len(names):6}"
            f" {sum(kills[name] > 0 for name in names):8} {sum(seconds[name] for name in names):8.1f}"
            f" {idle:8.1f}  {file}"
        )
    for verdict in verdicts:
        if verdict.killer is None:
            yield f"survived ({verdict.tests} tests): {verdict.mutant}"


def _package(package: Package, options: argparse.Namespace, to: Connection) -> None:
    judgement = judge(
        package.files,
        [*package.tests, *SUITE],
        most=options.most,
        seed=options.seed,
        limit=options.seconds,
        say=lambda line: print(line, flush=True),
        called=True,
        minutes=options.minutes,
    )
    to.send(judgement)


def judged(package: Package, options: argparse.Namespace) -> Judgement | None:
    """What became of the package's mutants, now or before. None: its tests could not be run."""
    kept = KEPT / f"{package.name.replace('/', '.')}.json"
    if kept.exists():
        rows = json.loads(kept.read_text())
        return Judgement(**rows | {"verdicts": [Verdict(*row) for row in rows["verdicts"]]})
    judgement: Judgement | None = _forked(_package, package, options)
    if judgement is not None:
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(judgement._asdict()))
    return judgement


def table(judgements: Mapping[str, Judgement]) -> Iterator[str]:
    """Rows of Markdown: one for each package, and one for all."""
    yield (
        "| package | mutants tried | killed | survived | of | beyond its tests | tests that ran | of | idle"
        " | idle, s |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    total = [0.0] * 9
    for name, judgement in sorted(judgements.items()):
        row = [
            len(judgement.verdicts),
            sum(judgement.kills.values()),
            len(judgement.survivors),
            judgement.called,
            judgement.uncalled,
            len(judgement.seconds),
            judgement.tests,
            len(judgement.idle),
            sum(judgement.seconds.get(test, 0.0) for test in judgement.idle),
        ]
        total = [before + more for before, more in zip(total, row, strict=True)]
        yield f"| {name} | " + " | ".join(f"{figure:,.0f}" for figure in row) + " |"
    yield "| all | " + " | ".join(f"{figure:,.0f}" for figure in total) + " |"


def _all_packages(names: Sequence[str], options: argparse.Namespace) -> int:
    known = packages()
    for name in names:
        if name not in known:
            raise SystemExit(f"no package {name}: {', '.join(known)}")
    judgements = {}
    for name in names or known:
        print(f"package {name}", flush=True)
        judgement = judged(known[name], options)
        if judgement is None:
            print(f"package {name}: its tests could not be run", flush=True)
            continue
        judgements[name] = judgement
        for verdict in judgement.survivors:
            print(f"survived ({verdict.tests} tests): {verdict.mutant}")
        for test in judgement.idle[:10]:
            print(f"idle ({judgement.tried[test]} mutants, {judgement.seconds.get(test, 0.0):.1f} s): {test}")
    print("\n".join(table(judgements)))
    return 0


def main(words: list[str] | None = None) -> int:
    """Judge the mutants of the files or packages that the words name."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="tests by mutation")
    parser.add_argument("files", nargs="*", type=Path, help="files of the product")
    parser.add_argument("--tests", nargs="+", default=[], help="what pytest is to run")
    parser.add_argument("--packages", nargs="*", help="packages of the product, none: all")
    parser.add_argument("--most", type=int, default=100, help="mutants at most, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests at most for one mutant")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="for a package, or for the files, about"
    )
    options = parser.parse_args(words)
    if options.packages is not None:
        return _all_packages(options.packages, options)
    if not options.files or not options.tests:
        parser.error("name files and --tests, or --packages")
    judgement = judge(
        options.files,
        options.tests,
        most=options.most,
        seed=options.seed,
        limit=options.seconds,
        say=lambda line: print(line, flush=True),
        minutes=options.minutes,
    )
    print("\n".join(summary(judgement)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
