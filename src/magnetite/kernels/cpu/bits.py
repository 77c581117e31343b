"""Sets of small whole numbers as words of 64 bits."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def lowest(_context, _word):
    """The smallest element of a set that is not empty: one machine instruction, which numba itself does not offer."""

    def generate(_target, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
