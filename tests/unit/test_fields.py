"""Each public field of a data class says in a line what its name and its type do not show."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "evenflow",
    "topics",
    "partitioner_service",
    "spark_consumers",
    "controller",
    "workbench",
    "cli",
    "producers",
    "monitoring",
    "benchmarks",
    "papers",
    "website",
)
RECORDS = {"NamedTuple", "BaseModel"}
"""The bases of classes whose annotated names are fields. A class that extends such a class is one too."""


class RecordClass(NamedTuple):
    """A class statement, and where it is."""

    path: str
    """Path from the root of the repository."""
    node: ast.ClassDef
    """The statement."""


def _last_name(expression: ast.expr) -> str:
    """`field` of `dataclasses.field(...)`, `BaseModel` of `pydantic.BaseModel`, `Page` of `Page[int]`."""
    if isinstance(expression, ast.Call):
        return _last_name(expression.func)
    if isinstance(expression, ast.Subscript):
        return _last_name(expression.value)
    return ast.unparse(expression).rpartition(".")[2]


def _record_classes() -> list[RecordClass]:
    """The data classes, named tuples and models of all packages."""
    classes = [
        RecordClass(path.relative_to(ROOT).as_posix(), node)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    names = set(RECORDS)
    while True:
        models = {
            each.node.name for each in classes if {_last_name(base) for base in each.node.bases} & names
        }
        if models <= names:
            break
        names |= models
    return [
        each
        for each in classes
        if {_last_name(base) for base in each.node.bases} & names
        or "dataclass" in {_last_name(decorator) for decorator in each.node.decorator_list}
    ]


def _is_text(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        and bool(statement.value.value.strip())
    )


def _described(value: ast.expr | None) -> bool:
    """Whether the field is a setting with a description of its own: `Field(description=...)`."""
    return isinstance(value, ast.Call) and any(word.arg == "description" for word in value.keywords)


def _undocumented(record_class: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    followers = [*record_class.body[1:], None]
    for statement, follower in zip(record_class.body, followers, strict=True):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        private = statement.target.id.startswith("_")
        of_class = "ClassVar" in ast.unparse(statement.annotation)
        if not (private or of_class or _is_text(follower) or _described(statement.value)):
            yield statement


def test_each_field_of_a_data_class_has_a_line_that_says_what_it_is() -> None:
    silent = [
        f"{each.path}:{field.lineno}: {each.node.name}.{ast.unparse(field.target)}"
        for each in _record_classes()
        for field in _undocumented(each.node)
    ]
    assert not silent, "write a docstring on the line below:\n" + "\n".join(silent)
