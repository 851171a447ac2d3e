"""The compiled lanes: a number type of four float64 in one register, and pointers. See ``lanes``.

numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator, misc"
from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model
from numba.np.arrayobj import make_array

LANES = 4
_NUMBER = ir.DoubleType()
_FOUR = ir.VectorType(_NUMBER, LANES)
_WHOLE = ir.IntType(64)
_PLACE = ir.IntType(32)


class Four(types.Type):
    """The type of four float64 in one register."""

    def __init__(self) -> None:
        super().__init__(name="Four")


four = Four()


@register_model(Four)
class _FourModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FOUR)


for _operator in (operator.add, operator.sub, operator.mul, operator.truediv):

    @infer_global(_operator)
    class _Arithmetic(ConcreteTemplate):
        cases = [signature(four, four, four)]  # noqa: RUF012


@lower_builtin(operator.add, four, four)
def _add(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    return builder.fadd(*arguments)


@lower_builtin(operator.sub, four, four)
def _subtract(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    return builder.fsub(*arguments)


@lower_builtin(operator.mul, four, four)
def _multiply(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    return builder.fmul(*arguments)


@lower_builtin(operator.truediv, four, four)
def _divide(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    return builder.fdiv(*arguments)


def _splat(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined), number, _PLACE(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_PLACE, LANES), [0] * LANES))


def _pick(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_PLACE, LANES), lanes))


def _wide(context: Any, kind: Any) -> Any:
    return ir.VectorType(context.get_data_type(kind.dtype), LANES)


def _widened(builder: Any, value: Any) -> Any:
    return value if value.type == _FOUR else builder.fpext(value, _FOUR)


def _call(builder: Any, name: str, arguments: Any) -> Any:
    """Call an LLVM intrinsic of numbers, or of four."""
    kind = arguments[0].type
    form = ir.FunctionType(kind, (kind,) * len(arguments))
    suffix = "v4f64" if kind == _FOUR else "f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, form, f"{name}.{suffix}"), arguments)


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """One number in all four lanes."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _splat(builder, arguments[0])

    return four(types.float64), lower


@intrinsic
def lane(typing: Any, value: Any, place: Any) -> Any:
    """One of the four."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return builder.extract_element(arguments[0], builder.trunc(arguments[1], _PLACE))

    return types.float64(four, types.intp), lower


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once: the same bits on every processor, in one instruction where it has one."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _call(builder, "llvm.fma", arguments)

    kind = four if four in (a, b, c) else types.float64
    return kind(kind, kind, kind), lower


@intrinsic
def start(typing: Any, array: Any) -> Any:
    """Where the memory of a contiguous array begins.

    ``start(a)[i]`` is ``a.ravel()[i]``: no sign of i to check, no shape to carry, no reference to count. Counting is
    what makes arrays dear in small functions, and threads that count the same array wait for each other. The
    array itself must live until the last use.
    """

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return make_array(kind.args[0])(context, builder, arguments[0]).data

    if array.layout != "C":
        raise TypingError("a pointer needs a contiguous array")
    return types.CPointer(array.dtype)(array), lower


@intrinsic
def after(typing: Any, pointer: Any, offset: Any) -> Any:
    """``a[offset:]`` of a pointer."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.intp), lower


@intrinsic
def load(typing: Any, pointer: Any, offset: Any) -> Any:
    """``a[offset : offset + 4]`` of floats."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        wide = _wide(context, kind.args[0])
        value = builder.load(builder.bitcast(builder.gep(arguments[0], [arguments[1]]), wide.as_pointer()))
        value.align = kind.args[0].dtype.bitwidth // 8
        return _widened(builder, value)

    return four(pointer, types.intp), lower


@intrinsic
def load_some(typing: Any, pointer: Any, offset: Any, count: Any) -> Any:
    """The first ``count`` of ``load``, then zeros; what lies behind them is not read."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        wide = _wide(context, kind.args[0])
        lanes = ir.Constant(ir.VectorType(_WHOLE, LANES), list(range(LANES)))
        mask = builder.icmp_signed("<", lanes, _splat(builder, arguments[2]))
        name = f"llvm.masked.load.v4{'f64' if wide == _FOUR else 'f32'}.p0"
        kinds = (wide.as_pointer(), _PLACE, ir.VectorType(ir.IntType(1), LANES), wide)
        masked = cgutils.get_or_insert_function(builder.module, ir.FunctionType(wide, kinds), name)
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), wide.as_pointer())
        align, zeros = _PLACE(kind.args[0].dtype.bitwidth // 8), ir.Constant(wide, [0.0] * LANES)
        return _widened(builder, builder.call(masked, [place, align, mask, zeros]))

    return four(pointer, types.intp, types.intp), lower


@intrinsic
def store(typing: Any, pointer: Any, offset: Any, value: Any) -> Any:
    """``a[offset : offset + 4] = value`` of float64."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        place = builder.gep(arguments[0], [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, _FOUR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, four), lower


@intrinsic
def fetch(typing: Any, pointer: Any, offset: Any) -> Any:
    """Ask for the memory of ``a[offset]`` ahead of its use. A hint: it changes no result."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        form = ir.FunctionType(ir.VoidType(), (byte, _PLACE, _PLACE, _PLACE))
        hint = builder.module.declare_intrinsic("llvm.prefetch", (byte,), form)
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        builder.call(hint, [place, _PLACE(0), _PLACE(3), _PLACE(1)])
        return context.get_dummy_value()

    return types.void(pointer, types.intp), lower


@intrinsic
def sums(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sums of the lanes of four values, in the four lanes of one."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        a, b, c, d = arguments

        def pairs(x: Any, y: Any, even: list[int], odd: list[int]) -> Any:
            return builder.fadd(_pick(builder, x, y, even), _pick(builder, x, y, odd))

        first, second = pairs(a, b, [0, 4, 2, 6], [1, 5, 3, 7]), pairs(c, d, [0, 4, 2, 6], [1, 5, 3, 7])
        return pairs(first, second, [0, 1, 4, 5], [2, 3, 6, 7])

    return four(four, four, four, four), lower


@intrinsic
def less(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``np.where(a < b, then, otherwise)``; a NaN is not less."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *arguments[:2]), *arguments[2:])

    return four(four, four, four, four), lower


@intrinsic
def size(typing: Any, value: Any) -> Any:
    """``np.abs``."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _call(builder, "llvm.fabs", arguments)

    return four(four), lower


@intrinsic
def whole(typing: Any, value: Any) -> Any:
    """``np.rint``."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return _call(builder, "llvm.rint", arguments)

    return four(four), lower


@intrinsic
def halvings(typing: Any, value: Any) -> Any:
    """``2.0 ** -value`` of whole numbers from 0 to 1022."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        wide = ir.VectorType(_WHOLE, LANES)
        count = builder.sext(builder.fptosi(arguments[0], ir.VectorType(_PLACE, LANES)), wide)
        exponent = builder.sub(ir.Constant(wide, [1023] * LANES), count)
        return builder.bitcast(builder.shl(exponent, ir.Constant(wide, [52] * LANES)), _FOUR)

    return four(four), lower


_MIDDLE = 0x3FE6A09E667F3BCD  # the bits of the root of 1/2


@intrinsic
def exponents(typing: Any, value: Any) -> Any:
    """k of four numbers from 1 up, where number = 2^k z and z lies between the roots of 1/2 and of 2."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        wide = ir.VectorType(_WHOLE, LANES)
        above = builder.sub(builder.bitcast(arguments[0], wide), ir.Constant(wide, [_MIDDLE] * LANES))
        count = builder.lshr(above, ir.Constant(wide, [52] * LANES))
        return builder.sitofp(builder.trunc(count, ir.VectorType(_PLACE, LANES)), _FOUR)

    return four(four), lower


@intrinsic
def mantissas(typing: Any, value: Any) -> Any:
    """z of ``exponents``."""

    def lower(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        wide = ir.VectorType(_WHOLE, LANES)
        bits, shift = builder.bitcast(arguments[0], wide), ir.Constant(wide, [52] * LANES)
        count = builder.lshr(builder.sub(bits, ir.Constant(wide, [_MIDDLE] * LANES)), shift)
        return builder.bitcast(builder.sub(bits, builder.shl(count, shift)), _FOUR)

    return four(four), lower
