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
