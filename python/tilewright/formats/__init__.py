"""Number formats on arrays of the host, exact to the last bit.

    formats.round(x, "e4m3")               the nearest numbers that the format has
    formats.encode(x, "e4m3")              their codes; formats.decode(codes, "e4m3") the way back
    formats.quantize(x, "nvfp4")           a matrix in a block format: codes, scales, dequantize()
    formats.to_128x4(scales)               scales in the order of Blackwell's tensor cores; from_128x4() back

Arrays are numpy's, or tensors of the CPU, and results are of the same kind. numpy is needed.
"""

from __future__ import annotations

from ._formats import Format, block_formats, decode, encode, formats, pack, round, unpack
from ._quantize import BlockFormat, Quantized, quantize
from ._scale_order import from_128x4, to_128x4

__all__ = ["BlockFormat", "Format", "Quantized", "block_formats", "decode", "encode", "formats", "from_128x4",
           "pack", "quantize", "round", "to_128x4", "unpack"]
