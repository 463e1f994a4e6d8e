"""What a kernel needs to read librdkafka's memory and to call its functions, which are addresses to it.

A structure of C is read word by word: its fields stand where the public header has them on a 64-bit machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Codegen = tuple[Any, Callable[..., Any]]
WORD, HALF, VOID = ir.IntType(64), ir.IntType(32), ir.VoidType()
"""Types of what librdkafka's functions take and return, as a compiler knows them. A pointer is a word."""


def for_kernels(typer: Callable[..., Codegen]) -> Callable[..., Any]:
    """Make a function for kernels to call. Its first argument is passed by numba, not by the caller."""
    return cast(Callable[..., Any], intrinsic(typer))


def calling(arguments: tuple[Any, ...], result: Any) -> Callable[..., Any]:
    """The code of a call. The first operand is the address of the function, and the others are its
    arguments.
    """

    def call(context: Any, builder: Any, signature: Any, operands: Any) -> Any:
        kind = ir.FunctionType(result, arguments)
        value = builder.call(builder.inttoptr(operands[0], kind.as_pointer()), operands[1:])
        return context.get_dummy_value() if result is VOID else value

    return call


@for_kernels
def word_at(_: Any, address: Any) -> Codegen:
    """The 64-bit word at this address."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], WORD.as_pointer()))

    return types.uint64(types.uint64), load


@for_kernels
def half_at(_: Any, address: Any) -> Codegen:
    """The signed 32-bit word at this address."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], HALF.as_pointer()))

    return types.int32(types.uint64), load


@for_kernels
def byte_at(_: Any, address: Any) -> Codegen:
    """The byte at this address."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))

    return types.uint8(types.uint64), load


@for_kernels
def copy_from(_: Any, target: Any, at: Any, source: Any, size: Any) -> Codegen:
    """Copy bytes from the address `source` to target[at:]."""

    def copy(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, place, address, count = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        source = builder.inttoptr(address, ir.IntType(8).as_pointer())
        target = builder.gep(data, [place])
        cgutils.raw_memcpy(builder, target, source, count, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(target, types.int64, types.uint64, types.int64), copy
