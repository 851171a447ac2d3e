"""Two machine instructions that numba has no name for. They never change, so its disk cache may rely on them."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def prefetch(typing: Any, array: Any, i: Any, j: Any) -> Any:
    """Ask for the memory of array[i, j] ahead of its use. A hint: it changes no result."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        view = make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, kind, view, list(arguments[1:]), wraparound=False)
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), (byte, number, number, number))
        )
        builder.call(hint, [builder.bitcast(pointer, byte), number(0), number(3), number(1)])
        return impl_ret_untracked(context, builder, signature.return_type, context.get_dummy_value())

    return types.void(array, types.intp, types.intp), lower


@intrinsic
def as_float(typing: Any, bits: Any) -> Any:
    """The float64 of these 64 bits."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), lower
