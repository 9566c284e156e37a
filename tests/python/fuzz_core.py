"""Random calls of the extension with random objects: `python fuzz_core.py SECONDS SEED`. Nothing may crash.

Every exception is a good end but SystemError and InternalError, which tell of a defect. Numbers of problems are
small or absurd, tensors of the host are real; an address given as a number would be read, so there is none but 0.
"""

import array
import ctypes
import random
import sys
import time

import tilewright
from tilewright import _core


class Liar:
    """Says of itself what is not so."""

    def __init__(self, rng):
        self.rng = rng

    def __index__(self):
        return self.rng.choice([-1, 0, 1 << 70])

    def __dlpack_device__(self):
        return self.rng.choice([(1, 0), (2, 0), (1,), None, "12", (1 << 70, 0)])

    def __dlpack__(self, **kwargs):
        if self.rng.random() < 0.2:
            raise self.rng.choice([TypeError, ValueError, BufferError, KeyError])("no")
        return self.rng.choice([None, 3, b"", object()])

    @property
    def __array_interface__(self):
        return self.rng.choice([None, {}, {"data": 3},
                                {"data": (0, False), "shape": (1 << 62, -3), "typestr": "<f4"},
                                {"data": (0, False), "shape": 7, "typestr": 3},
                                {"data": (0, True), "shape": (2,) * 30, "typestr": "<f4", "strides": (1,)}])

    @property
    def dtype(self):
        return self.rng.choice(["float32", "bfloat16", None, 3, "O"])

    def __cuda_stream__(self):
        return self.rng.choice([(0, 0), (0,), None, ("a", "b")])

    def keys(self):
        return self.rng.choice([[], ["q"], [3], None])

    def __getitem__(self, key):
        if self.rng.random() < 0.5:
            raise KeyError(key)
        return self

    def __len__(self):
        return self.rng.choice([0, 3, 1 << 40])


def tensor(rng):
    size = rng.choice([0, 1, 7, 64, 4096])
    return rng.choice([bytes(size), bytearray(size), array.array("f", [0.0] * size), array.array("i", [1] * size),
                       memoryview(bytearray(4 * size)).cast("f"), memoryview(bytes(size))[::2]])


def value(rng, depth=0):
    pick = rng.randrange(14 if depth < 3 else 11)
    if pick < 3:
        return rng.choice([0, 1, 2, 3, 8, 16, 64, 128])
    if pick == 3:
        return rng.choice([-1, -(1 << 63), 1 << 31, (1 << 63) - 1, 1 << 64, 1 << 200])
    if pick == 4:
        return rng.choice([None, True, False, ..., object(), object, int, Liar])
    if pick == 5:
        return rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e308])
    if pick == 6:
        return rng.choice(["bf16", "f16", "f32", "e4m3", "auto", "k6", "", "\0", "\ud800", "head", "a" * 9000])
    if pick in (7, 8, 9):
        return tensor(rng)
    if pick == 10:
        return Liar(rng)
    if pick == 11:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if pick == 12:
        return tuple(value(rng, depth + 1) for _ in range(rng.randrange(6)))
    return {rng.choice(["batch", "cache", "pages", "format", 3, "n"]): value(rng, depth + 1) for _ in range(3)}


def arguments(rng, kinds):
    made = {}
    for name, kind in kinds.items():
        if rng.random() < 0.4:
            continue
        if isinstance(kind, dict) and rng.random() < 0.8:
            made[name] = arguments(rng, kind)
        elif kind in ("input", "output") and rng.random() < 0.7:
            made[name] = tensor(rng)
        elif kind == "int" and rng.random() < 0.8:
            made[name] = rng.choice([0, 1, 1, 2, 4, 64, 128])
        else:
            made[name] = value(rng)
    if rng.random() < 0.1:
        made[rng.choice(["nothing", "q", "", "\0"])] = value(rng)
    return made


def without_addresses(given):
    """Numbers where an address is wanted would be read."""
    return {name: 0 if type(inner) is int and abs(inner) > 4096 else inner for name, inner in given.items()}


def methods(kind):
    return [name for name in ("run", "write", "read", "list", "check") if hasattr(kind, name)]


def known_calls(rng, made):
    """A table of calls, with whatever for its functions, types and arguments."""
    functions = {name: rng.choice([lambda *args: False, lambda *args: value(rng), None, 3])
                 for name in ("grad_enabled", "is_capturing", "allocate")}
    guards = tuple(rng.choice([lambda: 0, lambda: None, lambda: 1 / 0, 3]) for _ in range(rng.randrange(10)))
    table = _core.Calls(rng.choice([0, 1, 2, 23, 99]), rng.choice([0, 1, 4]), guards=guards,
                        plain=rng.choice([(bytearray, Liar), (memoryview, int), (1, 2), (int,), 3]), **functions)
    for _ in range(4):
        given = tuple(value(rng) for _ in range(rng.randrange(6)))
        table.run(*given), table.addresses(*given), len(table)
        if made:
            member = rng.choice(["q", "x", "out", "window.pages", "stream", "workspace", ""])
            table.add(given, rng.choice(made), rng.choice([0, 1 << 40, -1]), {member: rng.choice([0, 1, -1, 50])},
                      {rng.choice([0, 1, -1, 50, "a"]): value(rng)},
                      {rng.choice(["causal", "nothing"]): value(rng)})
    table.clear()
    if made:
        _core.xla_call(rng.choice(["a", "b", "\0", value(rng)]), rng.choice(made),
                       {rng.choice(["q", "x", "out", "workspace", "stream", ""]): rng.choice([0, 1, -1, 50, "a"])},
                       rng.choice([0, 1, 30, -1]), rng.choice([0, 1, 30, -1, value(rng)]), value(rng), value(rng))


def one_call(rng, device, made):
    """Makes an operator, or reads a call of one: launches belong to the tests of operators."""
    pick = rng.random()
    if pick < 0.5:
        kind = getattr(_core, rng.choice(_core.CLASSES))
        on = device if rng.random() < 0.95 else value(rng)
        if made and kind in (_core.Linear, _core.Moe):
            on = rng.choice(made)
        op = kind(on, **arguments(rng, _core.members(kind)))
        repr(op), op.problem, op.plan
        made.append(op)
        del made[:-40]
    elif pick < 0.8 and made:
        op = rng.choice(made)
        kinds = _core.members(op, "run") if hasattr(op, "run") else {}
        _core.read_call(op, **without_addresses(arguments(rng, kinds)))
    elif pick < 0.85:
        known_calls(rng, made)
    elif pick < 0.9:
        rng.choice([_core.view, _core.describe, _core.library_path, _core.members])(value(rng))
    else:
        buffer = _core.Buffer(device, value(rng), value(rng)) if rng.random() < 0.5 else _core.Buffer(device, 64)
        rng.choice([buffer.upload, buffer.fill, buffer.download])(value(rng))
        rng.choice([_core.quantize_sizes, _core.rope_table])(**arguments(rng, _core.members(_core.Quantize)))


def main(seconds, seed):
    rng, device, made = random.Random(seed), tilewright.Device("sim:h200"), []
    end, calls, errors = time.monotonic() + seconds, 0, {}
    while time.monotonic() < end:
        calls += 1
        try:
            one_call(rng, device, made)
        except (SystemError, tilewright.InternalError):
            print(f"after {calls} calls with seed {seed}", file=sys.stderr)
            raise
        except Exception as error:
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
    ctypes.pythonapi.PyErr_Clear()
    print(f"{calls} calls, {len(made)} operators live, exceptions {errors}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
