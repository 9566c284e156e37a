"""What operators say before they run, and whether they can be made at all."""

import pytest

import tilewright

pytestmark = pytest.mark.usefixtures("kernels")

PROBLEM = {"heads": 4, "kv_heads": 2, "q_len": 64, "kv_len": 64, "head_dim": 64}


def test_plan_of_an_operator(dev):
    op = tilewright.Attention(dev, **PROBLEM)
    assert op.plan.kernel == op.kernel and op.plan.workspace_bytes == op.workspace_bytes
    assert str(op.plan) == op.plan_text and "tiles of" in op.plan_text
    assert op.plan.flops == 4 * 64 * 4 * 64 * 64


@pytest.mark.parametrize("device", ["h200", "b200", "sim:h200"])
def test_can_implement(device):
    answer = tilewright.can_implement("Attention", device, **PROBLEM)
    assert answer and answer.plan.kernel and not answer.reasons and "tiles of" in str(answer)


def test_can_implement_says_why_not(dev):
    answer = tilewright.can_implement(tilewright.Attention, dev, **(PROBLEM | {"head_dim": 63}))
    assert not answer and answer.plan is None
    assert "head_dim = 63" in str(answer) and "Pad with zeros" in str(answer)
    assert answer.reasons
