#!/usr/bin/env python3
"""Records what the tensor cores of a GPU compute: mma.sync and wgmma of every type.

    python3 tools/ptx/record_tensor_numbers.py FILE.ptx FILE.safetensors [--rounds N] [--seed N] [--inputs FILE]

Needs libcuda.so.1 and nothing else. Writes the program (a kernel per form, tensor_number_forms.py) and, per
form, the words that went in and those that came out. --only-inputs needs no GPU; --inputs takes what it wrote.
"""

import argparse
import array
import ctypes
import datetime
import json
import pathlib
import struct
import sys

import tensor_number_data
import tensor_number_forms
from run_ptx_on_gpu import Gpu


def write_safetensors(path, tensors, metadata):
    """tensors: name to (columns, words)."""
    header, data = {"__metadata__": metadata}, b""
    for name, (columns, words) in sorted(tensors.items()):
        content = array.array("I", words).tobytes()
        header[name] = {"dtype": "U32", "shape": [len(words) // columns, columns],
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = (entry["shape"][1], list(array.array("I", content[first:last])))
    return tensors


def make_inputs(num_rounds, seed):
    """A round is a product of each kind. Forms that only vary another, and those that are exact, get fewer."""
    inputs, num_kinds = {}, len(tensor_number_data.KINDS)
    for form in tensor_number_forms.forms():
        count = num_rounds * num_kinds
        if form.d == "s32":
            count = 2
        elif form.is_variant:
            count = max(1, count // 4)
        words = [word for product in tensor_number_data.products(form, count, seed) for word in product]
        inputs[f"{form.name}.in"] = (form.in_words, words)
    return inputs


class Recorder:
    def __init__(self):
        self.gpu = Gpu()
        self.module = self.gpu.load(tensor_number_forms.module())

    def facts(self):
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.gpu.call("cuDeviceGetName", name, 100, 0)
        self.gpu.call("cuDriverGetVersion", ctypes.byref(version))
        return {"device": name.value.decode(), "date": datetime.date.today().isoformat(),
                "driver": f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"}

    def run(self, form, words):
        call, count = self.gpu.call, len(words) // form.in_words
        data = (ctypes.c_uint32 * len(words))(*words)
        result = (ctypes.c_uint32 * (count * form.out_words))(*[0xA5A5A5A5] * (count * form.out_words))
        buffers = [ctypes.c_uint64(), ctypes.c_uint64()]
        for buffer, host in zip(buffers, (data, result)):
            call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(ctypes.sizeof(host)))
            call("cuMemcpyHtoD_v2", buffer, host, ctypes.c_size_t(ctypes.sizeof(host)))
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), self.module, form.name.encode())
        params = (ctypes.c_void_p * 2)(*[ctypes.addressof(buffer) for buffer in buffers])
        call("cuLaunchKernel", function, count, 1, 1, form.threads, 1, 1, 0, None, params, None)
        call("cuMemcpyDtoH_v2", result, buffers[1], ctypes.c_size_t(ctypes.sizeof(result)))
        for buffer in buffers:
            call("cuMemFree_v2", buffer)
        return list(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ptx", type=pathlib.Path)
    parser.add_argument("recording", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=1, help="products of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=pathlib.Path)
    parser.add_argument("--only-inputs", action="store_true")
    args = parser.parse_args()
    tensors = read_safetensors(args.inputs) if args.inputs else make_inputs(args.rounds, args.seed)
    args.ptx.write_text(tensor_number_forms.module())
    facts = {}
    if not args.only_inputs:
        recorder = Recorder()
        facts = recorder.facts()
        for form in tensor_number_forms.forms():
            tensors[f"{form.name}.out"] = (form.out_words, recorder.run(form, tensors[f"{form.name}.in"][1]))
            print(form.name, flush=True)
    write_safetensors(args.recording, tensors, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
