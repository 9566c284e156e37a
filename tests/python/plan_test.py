"""What operators say before they run, and whether they can be made at all."""

import pytest

import tilewright

pytestmark = pytest.mark.usefixtures("kernels")

PROBLEM = {"heads": 4, "kv_heads": 2, "q_len": 64, "kv_len": 64, "head_dim": 64}


def test_plan_of_an_operator(dev):
    op = tilewright.Attention(dev, **PROBLEM)
    plan = op.plan
    assert plan.kernel == op.kernel and plan.workspace_bytes == op.workspace_bytes
    assert str(plan) == op.plan_text and "tiles of" in op.plan_text
    assert plan.flops == 4 * 64 * 4 * 64 * 64 and plan.assumption == ""
    chosen = [c for c in plan.candidates if c.is_chosen]
    assert [c.name for c in chosen] == [plan.kernel] and not chosen[0].reason
    assert all(c.reason for c in plan.candidates if not c.is_chosen)
    assert plan.launches[0].step == "attend" and plan.launches[0].block[0] % 32 == 0


@pytest.mark.parametrize("device", ["h200", "b200", "sim:h200"])
def test_can_implement(device):
    answer = tilewright.can_implement("Attention", device, **PROBLEM)
    assert answer and answer.plan.kernel and not answer.reasons and "tiles of" in str(answer)


def test_can_implement_gives_every_reason():
    wrong = PROBLEM | {"head_dim": 63, "kv_heads": 3, "softcap": -1.0}
    answer = tilewright.can_implement(tilewright.Attention, **wrong)
    assert not answer and answer.plan is None
    reasons = {reason.field: reason for reason in answer.reasons}
    assert {"head_dim", "softcap"} <= set(reasons) and len(reasons) >= 3
    assert reasons["head_dim"].value == "63" and "Pad with zeros" in reasons["head_dim"].fix
    assert "head_dim" in answer._repr_html_()


@pytest.mark.parametrize("name, problem", [
    ("Linear", {"weight": {"format": "nvfp4", "n": 256, "k": 256}, "m": 3}),
    ("Moe", {"weights": {"format": "bf16", "experts": 4, "hidden": 128, "inter": 128}, "tokens": 3, "topk": 2}),
    ("Indexer", {"tokens": 2, "batch": 1, "max_len": 64, "keys": {"num_pages": 4}}),
    ("IndexerLogits", {"tokens": 2, "batch": 1, "max_len": 64}),
    ("KvCache", {"num_pages": 4, "work": {"tokens": 2}}),
    ("Compressor", {"kind": "csa", "cache": {"num_pages": 4}, "state_slots": 1, "batch": 1, "max_tokens": 4}),
    ("RmsNorm", {"rows": 2, "cols": 128}),
    ("Quantize", {"format": "nvfp4", "rows": 4, "cols": 128}),
])
def test_can_implement_knows_what_else_a_plan_takes(name, problem):
    answer = tilewright.can_implement(name, **problem)
    assert answer, answer.text
    assert answer.plan.launches


def test_what_cannot_be_made_says_why(dev):
    with pytest.raises(tilewright.Unsupported) as caught:
        tilewright.Attention(dev, **(PROBLEM | {"head_dim": 264}))
    assert caught.value.reasons[0].field == "kernel" and "Pad" in caught.value.reasons[0].fix


def test_a_device_that_plans_runs_nothing():
    device = tilewright.Device("plan:b200")
    assert not device.can_run
    with pytest.raises(tilewright.Error):
        tilewright.empty(device, 4)
