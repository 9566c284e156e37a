"""Random calls of torch.ops.tilewright.* and of tilewright.torch: python fuzz_torch.py SECONDS SEED."""

import random
import sys
import time

import torch

import tilewright
import tilewright.torch as tt
from tilewright.torch import _context, _ops

OPS = [getattr(torch.ops.tilewright, name).default for name in
       ("attention", "attention_out", "attention_decode", "attention_decode_out", "attention_paged",
        "attention_paged_out", "merge_attention", "merge_attention_out", "mask_lists", "mla_lists", "quantize",
        "linear", "moe", "moe_grouped", "sparse_attention", "sparse_attention_out", "latent_attention",
        "latent_attention_out", "sample", "cache_append")]
FUNCTIONS = [tt.attention, tt.attention_decode, tt.attention_paged, tt.attention_varlen, tt.mask_lists,
             tt.merge_attention, tt.latent_attention, tt.mla_decode, tt.quantize, tt.sample, tt.sparse_attention,
             tt.Linear, tt.Moe, tt.cache_append]
DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.uint8, torch.float8_e4m3fn]
# What says nothing to a caller.
UNCLEAR = (SystemError, AttributeError, IndexError, KeyError, tilewright.InternalError)


def tensor(rng):
    """Mostly what fits: 4 dimensions, bfloat16; else of any shape, strides, type, and with gradients."""
    shape = (2, rng.choice([1, 4]), 2, 64) if rng.random() < 0.6 else \
        tuple(rng.choice([0, 1, 2, 3, 64]) for _ in range(rng.randrange(6)))
    made = torch.zeros(shape, dtype=torch.bfloat16 if rng.random() < 0.6 else rng.choice(DTYPES))
    pick = rng.random()
    if pick < 0.1 and made.dim() > 1:
        made = made.transpose(0, -1)
    elif pick < 0.15 and made.dim():
        made = made[..., ::2]
    elif pick < 0.2 and made.is_floating_point():
        made.requires_grad_()
    elif pick < 0.24:
        made = rng.choice([lambda: made.to("meta"), lambda: made.to_sparse(),
                           lambda: torch._neg_view(made) if made.is_floating_point() else made,
                           lambda: made.as_subclass(torch.nn.Parameter)])()
    return made


def value(rng):
    return rng.choice([None, True, -1, 0, 1, 3, 1 << 40, 0.5, float("nan"), "auto", "nvfp4", "k6", "", object(),
                       [], b"x", torch.bfloat16, torch.float32, lambda: 1])


def argument(rng, kind):
    if rng.random() < 0.05:
        return value(rng)
    if kind == "Tensor" or kind == "Optional[Tensor]":
        return None if rng.random() < (0.05 if kind == "Tensor" else 0.6) else tensor(rng)
    return {"int": lambda: rng.choice([-1, 0, 1, 4, 64, 1 << 62, -(1 << 62)]), "bool": lambda: rng.random() < 0.5,
            "float": lambda: rng.choice([0.0, 1.0, float("nan"), 1e300]),
            "Optional[float]": lambda: rng.choice([None, 0.125, float("inf")]),
            "ScalarType": lambda: rng.choice(DTYPES),
            "str": lambda: rng.choice(["auto", "nvfp4", "nearest", "fp8_1x128", "\u00e9" * 99, ""])}[
                kind.replace("SymInt", "int")]()


def good(op, layer):
    """Arguments that are served, by the names of the schema."""

    def rows(*shape):
        return torch.zeros(shape, dtype=torch.bfloat16)

    tensors = {"q": rows(2, 4, 2, 64), "k": rows(2, 4, 2, 64), "v": rows(2, 4, 2, 64),
               "k_cache": rows(2, 40, 2, 64), "v_cache": rows(2, 40, 2, 64),
               "lengths": torch.full((2,), 9, dtype=torch.int32), "out": rows(2, 4, 2, 64), "x": rows(3, 64)}
    others = {"max_q": 4, "max_kv": 4, "causal": True, "window_left": -1, "window_right": -1, "softcap": 0.0,
              "kernel": "auto", "interleaved": True, "splits": 0, "return_lse": False, "format": "nvfp4",
              "scales": "nearest", "weight": layer._handle, "features": 64, "dtype": torch.bfloat16}
    return [(tensors | others).get(one.name) if not str(one.real_type).startswith("Optional") else None
            for one in op._schema.arguments]


GOOD = [torch.ops.tilewright.attention.default, torch.ops.tilewright.attention_decode_out.default,
        torch.ops.tilewright.quantize.default, torch.ops.tilewright.linear.default]


def one_call(rng, layer):
    grad = rng.choice([torch.inference_mode, torch.no_grad, torch.enable_grad])
    with grad():
        pick = rng.random()
        if pick < 0.4:  # what is served, or that with an argument or two changed
            op = rng.choice(GOOD)
            given = good(op, layer)
            for _ in range(rng.choice([0, 1, 2])):
                at = rng.randrange(len(given))
                given[at] = argument(rng, str(op._schema.arguments[at].real_type))
            for _ in range(3):
                op(*given)
        elif pick < 0.8:
            op = rng.choice(OPS)
            given = [argument(rng, str(one.real_type)) for one in op._schema.arguments]
            for _ in range(rng.choice([1, 1, 3])):  # the second time it may be known
                op(*given)
        else:
            given = [rng.choice([tensor, tensor, tensor, value])(rng) for _ in range(rng.randrange(1, 5))]
            rng.choice(FUNCTIONS)(*given)


def main(seconds, seed):
    tt.set_device("sim:h200")
    for calls in _context.all_calls:
        calls.is_dry = True  # launches belong to the tests of operators
    rng, layer = random.Random(seed), tt.Linear(torch.zeros(64, 64, dtype=torch.bfloat16))
    end, calls, errors = time.monotonic() + seconds, 0, {}
    while time.monotonic() < end:
        calls += 1
        try:
            one_call(rng, layer)
        except Exception as error:
            if isinstance(error, UNCLEAR):
                print(f"after {calls} calls with seed {seed}", file=sys.stderr)
                raise
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
    known = sum(map(len, _ops.tables.values()))
    print(f"{calls} calls, {known} known, exceptions {errors}, kernels in C: {_ops.is_stable}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
