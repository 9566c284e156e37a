"""Operators on the simulated B200 from Python: their tests again, on another device. Kernels are others there."""

import pytest

import tilewright
from attention_test import (  # noqa: F401
    test_decode,
    test_decode_appends_what_is_new,
    test_packed_sequences_and_empty_rows,
    test_strided_views_of_one_tensor,
)
from deepseek_v4_test import (  # noqa: F401
    test_compressor,
    test_hyper_connection,
    test_hyper_embedding,
    test_indexer_selects_the_largest,
    test_inverse_rope,
    test_lists_of_rows,
    test_rms_norm,
    test_rows_of_a_cache_are_written_and_read,
    test_sparse_attention_of_two_lists,
)
from linear_test import (  # noqa: F401
    test_linear,
    test_linear_of_rows_with_strides,
    test_moe,
    test_moe_of_tokens_that_come_grouped,
    test_quantize_gives_the_bytes_of_the_host,
)

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session")
def dev():
    return tilewright.Device("sim:b200")


def test_the_device_of_this_file_is_a_b200(dev):
    assert "compute capability 10.0" in dev.description


def test_functions_on_tensors_run_there():
    """With torch, the table of known calls included."""
    pytest.importorskip("torch")
    import tilewright.torch as tt
    from torch_reference import bf16, close
    from torch_reference import attention as reference

    tt.set_device("sim:b200")
    q, k, v = bf16(1, 20, 4, 64), bf16(1, 33, 2, 64, seed=1), bf16(1, 33, 2, 64, seed=2)
    for _ in range(2):
        out, lse = tt.attention(q, k, v, causal=True, return_lse=True)
        right, right_lse = reference(q, k, v, causal=True)
        close(out, right, 2**-7)  # bf16 of weights and of the result, of values that hardly exceed 1
        close(lse, right_lse, 1e-5)
    tt.set_device("sim:h200")


@pytest.mark.parametrize("device", ["sim:b200", "sim:b300"])
def test_experts_of_tokens_in_rooms(device):
    """Masked: room for 6 rows an expert, of which the first so many are there. Against the same rows routed."""
    torch = pytest.importorskip("torch")
    import tilewright.torch as tt
    from torch_reference import bf16

    tt.set_device(device)
    gate, up, down = bf16(3, 128, 256) / 8, bf16(3, 128, 256, seed=1) / 8, bf16(3, 256, 128, seed=2) / 8
    layer = tt.Moe(gate, up, down, format="mxfp4", activations="block_scaled")
    x, weights, counts = bf16(3, 6, 256, seed=3), torch.rand(3, 6), torch.tensor([2, 0, 6], dtype=torch.int32)
    ids = torch.arange(3, dtype=torch.int32).repeat_interleave(6)[:, None]
    routed = layer(x.view(18, 256), ids, weights.view(18, 1)).view(3, 6, 256)
    exact = torch.zeros(3, 6, 256, dtype=torch.float64)
    for e in range(3):
        rows = x[e].double()
        h = torch.nn.functional.silu(rows @ gate[e].double().T) * (rows @ up[e].double().T)
        exact[e] = weights[e, :, None] * (h @ down[e].double().T)
    for given in (x, torch.where((torch.arange(6) < counts[:, None])[:, :, None], x, torch.nan)):
        for _ in range(2):  # the second time the call is known
            found = layer.grouped(given, counts, weights, expected=4)
            for e, count in enumerate(counts.tolist()):
                assert torch.equal(found[e, :count], routed[e, :count])
    there = torch.arange(6) < counts[:, None]
    error = (found[there] - exact[there]).norm() / exact[there].norm()
    assert error < 0.24, error  # the three weights, of 4 bits: 0.13 each, so 0.225; x and h, of 8: 0.03 each
    behind = layer.grouped(torch.cat((x[0, :2], x[2])), counts, torch.cat((weights[0, :2], weights[2])))
    assert torch.equal(behind, found[there])
    tt.set_device("sim:h200")
