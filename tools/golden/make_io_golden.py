#!/usr/bin/env python3
"""Writes tests/golden/io: small npy and safetensors files made by numpy and safetensors.

The tests of src/base read them and compare with expected.json; where the format allows one answer
only, they also compare what Tilewright writes with these files byte for byte.

    pip install numpy safetensors ml_dtypes
    python3 tools/golden/make_io_golden.py
"""

import argparse
import json
import pathlib
import struct

import ml_dtypes
import numpy
import safetensors
from numpy.lib import format as npy_format
from safetensors.numpy import save_file

# numpy dtype -> element type in safetensors
NPY_TYPES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "float32": "F32",
    "float64": "F64", "complex64": "C64",
}

# Element type -> bits, for the types that numpy lacks; their elements are arbitrary bytes here.
RAW_TYPES = {
    "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}


def sample(dtype, shape):
    """Values that use the sign and the whole width of the type, different in every element."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    values = [37 * i - 50 for i in range(count)]
    if dtype == "bool":
        values = [i % 2 == 1 for i in range(count)]
    elif "int" in dtype:
        limits = numpy.iinfo(dtype)
        values = ([limits.min, limits.max] + [value % 100 for value in values])[:count]
    return numpy.array(values, dtype=dtype).reshape(shape)


def describe(dtype, shape, data):
    return {"dtype": dtype, "shape": list(shape), "bytes": data.hex()}


def write_npy_files(folder, expected):
    def save(name, array, version=None):
        with open(folder / name, "wb") as file:
            npy_format.write_array(file, array, version=version)

    for name, dtype in NPY_TYPES.items():
        array = sample(name, (2, 3))
        save(f"{name}.npy", array)
        expected[f"{name}.npy"] = describe(dtype, array.shape, array.tobytes())
    shapes = {"scalar": (), "vector": (5,), "empty": (0, 4), "rank5": (1, 2, 1, 3, 2)}
    for name, shape in shapes.items():
        array = sample("float32", shape)
        save(f"{name}.npy", array)
        expected[f"{name}.npy"] = describe("F32", shape, array.tobytes())
    for version in (2, 3):
        array = sample("int16", (3, 2))
        save(f"version{version}.npy", array, (version, 0))
        expected[f"version{version}.npy"] = describe("I16", array.shape, array.tobytes())

    # What is refused.
    save("refused_fortran.npy", numpy.asfortranarray(sample("float32", (2, 3))))
    save("refused_big_endian.npy", sample("float32", (2, 3)).astype(">f4"))
    save("refused_structured.npy", numpy.zeros(2, dtype=[("a", "<i4"), ("b", "<f8")]))
    save("refused_object.npy", numpy.array([None, 1], dtype=object))
    save("refused_string.npy", numpy.array(["ab", "c"]))
    save("refused_date.npy", numpy.zeros(2, dtype="datetime64[s]"))
    save("refused_bf16.npy", numpy.zeros(2, dtype=ml_dtypes.bfloat16))
    save("refused_e4m3.npy", numpy.zeros(2, dtype=ml_dtypes.float8_e4m3fn))
    save("refused_complex128.npy", numpy.zeros(2, dtype="complex128"))


def raw_safetensors(tensors):
    """A file with types that safetensors.numpy cannot save, laid out as the library does it."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_safetensors_files(folder, expected):
    arrays = {f"{name}.weight": sample(name, (2, 3)) for name in NPY_TYPES}
    arrays |= {"scalar": sample("float32", ()), "empty": sample("float32", (0, 4)),
               "name \"with\" \\ \u00e4\n": sample("uint8", (3,))}
    save_file(arrays, folder / "numpy_types.safetensors", metadata={"made by": "numpy \u2713"})
    expected["numpy_types.safetensors"] = {
        name: describe(NPY_TYPES[str(array.dtype)], array.shape, array.tobytes())
        for name, array in arrays.items()
    }

    raw = {}
    for i, (dtype, bits) in enumerate(RAW_TYPES.items()):
        content = bytes((16 * i + 7 * j) % 256 for j in range(16 * bits // 8))
        raw[f"raw.{dtype}"] = (dtype, [4, 4], content)
    file = raw_safetensors(raw)
    safetensors.deserialize(file)  # the library accepts it
    (folder / "raw_types.safetensors").write_bytes(file)
    expected["raw_types.safetensors"] = {name: describe(*entry) for name, entry in raw.items()}

    save_file({}, folder / "no_tensors.safetensors")
    expected["no_tensors.safetensors"] = {}


def write_sharded_model(folder, expected):
    folder.mkdir(exist_ok=True)
    shards = {
        "model-00001-of-00002.safetensors": {"embed.weight": sample("float32", (4, 2)),
                                             "layers.0.bias": sample("float16", (3,))},
        "model-00002-of-00002.safetensors": {"layers.1.bias": sample("float16", (3,)),
                                             "head.weight": sample("float32", (2, 4))},
    }
    for name, arrays in shards.items():
        save_file(arrays, folder / name, metadata={"format": "np"})
    weight_map = {tensor: shard for shard, arrays in shards.items() for tensor in arrays}
    total = sum(a.nbytes for arrays in shards.values() for a in arrays.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    expected["model"] = {
        tensor: describe(NPY_TYPES[str(array.dtype)], array.shape, array.tobytes())
        for arrays in shards.values() for tensor, array in arrays.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "io"
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=default)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    expected = {"made_by": f"tools/golden/make_io_golden.py, numpy {numpy.__version__}, "
                           f"safetensors {safetensors.__version__}, "
                           f"ml_dtypes {ml_dtypes.__version__}",
                "npy": {}, "safetensors": {}}
    write_npy_files(folder, expected["npy"])
    write_safetensors_files(folder, expected["safetensors"])
    write_sharded_model(folder / "model", expected["safetensors"])
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
