"""tilewright.testing.peers: a suite of a few cases is run whole, in part, by several processes, and cut off."""

import argparse
import collections
import functools
import importlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
from tilewright.testing.peers import __main__ as peers  # noqa: E402
from tilewright.testing.peers import _deferred, _fa3, _suite  # noqa: E402
from tilewright.testing.peers._lines import Lines, read  # noqa: E402
from tilewright.testing.peers._log import Log  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels")
# As FlashMLA's file is laid out; each case says in a file that it ran.
PREFILL = '''
import os, pathlib, sys, time, torch, flash_mla

class Case:
    d_qk, d_v, s_q, s_kv, h_q, topk, num_runs, check_correctness = 512, 512, 1, 4, 2, 4, 0, True

    def __init__(self, what, **more):
        self.what, self.seed = what, 0
        vars(self).update(more)

def run_test(case):
    ran = pathlib.Path(os.environ["RAN"])
    (ran / f"{case.what}-{case.seed}-{os.getpid()}").touch()
    if case.what == "slow":
        time.sleep(600)
    if case.what == "dies":
        os._exit(7)
    if case.what == "raises":
        raise ValueError("as it should")
    if case.what == "wrong":
        return False
    kv = torch.ones(4, 1, 512, dtype=torch.bfloat16)
    indices = torch.arange(4, dtype=torch.int32).view(1, 1, 4)
    q = torch.zeros(1, 2, 512, dtype=torch.bfloat16)
    out, largest, lse = flash_mla.flash_mla_sparse_fwd(q, kv, indices, 1.0)
    return bool((out == 1).all()) and bool((lse - 1.3862943).abs().max() < 1e-5)

if __name__ == "__main__":
    testcases = [Case(what) for what in os.environ["CASES"].split()] + [Case("wide", d_qk=320)]
    for testcase in testcases:
        run_test(testcase)
'''

# As its file of dense decoding is laid out: cases are made in main(), and a test asserts.
DENSE = '''
import dataclasses, torch, flash_mla

@dataclasses.dataclass
class TestParam:
    b: int
    s_q: int
    s_k: int
    is_varlen: bool
    is_causal: bool
    test_performance: bool = True
    block_size: int = 64
    h_q: int = 4
    h_kv: int = 1
    d: int = 576
    dv: int = 512

def test_flash_mla(t):
    k = torch.ones(2 * t.b, t.block_size, t.h_kv, t.d, dtype=torch.bfloat16)
    table = torch.arange(2 * t.b, dtype=torch.int32).view(t.b, 2)
    lengths = torch.full((t.b,), t.s_k, dtype=torch.int32)
    q = torch.zeros(t.b, t.s_q, t.h_q, t.d, dtype=torch.bfloat16)
    schedule, splits = flash_mla.get_mla_metadata()
    out, lse = flash_mla.flash_mla_with_kvcache(q, k, table, lengths, t.dv, schedule, splits, causal=t.is_causal)
    assert (out == 1).all() and out.shape[2] == t.h_q
    assert (lse[:, :, -1].exp() - t.s_k).abs().max() < 1e-3, "as it should"
    assert t.s_k < 70, "as it should"

def main(dtype):
    first, second = 1, 2
    cases = [TestParam(1, 2, s_k, False, True, test_performance=False, h_kv=h_kv)
             for s_k in (60, 70) for h_kv in (1, 2)]
    testcases = cases + [TestParam(1, 2, 60, False, True), TestParam(1, 2, 60, False, True, False, h_kv=3)]
    for testcase in testcases:
        test_flash_mla(testcase)

if __name__ == "__main__":
    main(torch.bfloat16)
'''

# As DeepGEMM's file is laid out: two tests that draw cases, score them and time kernels.
ATTENTION = '''
import torch, deep_gemm

bench_kineto = None
f32, bf16 = torch.float, torch.bfloat16

def sample_mqa_cases(name, cases):
    raise AssertionError("the runner draws")

def test_mqa_logits():
    cases = [(False, f32, f32, False, True, 3, 9, 32, 128, True),
             (False, bf16, f32, False, True, 3, 9, 32, 128, True),
             (False, f32, f32, False, True, 3, 9, 32, 64, True),
             (False, f32, f32, True, False, 3, 9, 32, 128, False)]
    for _, logits_dtype, _, compressed, clean, s, n, heads, dim, _ in sample_mqa_cases("prefill", cases):
        q = torch.randn(s, heads, dim, device="cuda").to(torch.float8_e4m3fn)
        kv = torch.ones(n, dim, device="cuda").to(torch.float8_e4m3fn), torch.ones(n, device="cuda")
        ends = torch.arange(s, device="cuda", dtype=torch.int)
        call = dict(q=(q, None), kv=kv, weights=torch.ones(s, heads, device="cuda"),
                    cu_seq_len_k_start=ends * 0, cu_seq_len_k_end=ends, clean_logits=clean,
                    max_seqlen_k=4 * compressed, logits_dtype=logits_dtype)
        logits = deep_gemm.fp8_fp4_mqa_logits(**call)
        assert logits.shape == (s, 4 if compressed else n)
        if compressed:
            raise ValueError("as it should")
        expected = q.float().sum(-1).relu().sum(-1)
        assert (logits[2, :2] - expected[2]).abs().max() < 1 and (logits[2, 2:] == -torch.inf).all()
        names = ("mqa_logits", "clean_logits")
        t, clean_t = bench_kineto(lambda: deep_gemm.fp8_fp4_mqa_logits(**call), names)
        assert t and clean_t

def test_paged_mqa_logits():
    for _ in sample_mqa_cases("paged", [(True, False, f32, f32, 64, True, False, 2, 1, 6, 32, 128, 100)]):
        raise AssertionError("refused")
'''


# As FlashInfer's files are laid out: helpers that need its compiler, and cases by marks.
DECODE = '''
import pytest, torch, flashinfer
from tests.test_helpers.jit_utils import gen_decode_attention_modules
from tests.test_helpers.utils_fp4 import create_nvfp4_kv
from flashinfer.utils import has_flashinfer_jit_cache

@pytest.mark.parametrize("kv_len", [20])
@pytest.mark.parametrize("head_dim", [64, 512])
@pytest.mark.parametrize("pos_encoding_mode", ["NONE", "ROPE_LLAMA"])
@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_batch_decode_with_paged_kv_cache(kv_len, head_dim, pos_encoding_mode, wrong):
    assert has_flashinfer_jit_cache()
    q = torch.randn(2, 4, head_dim, device="cuda:0", dtype=torch.float16)
    kv = torch.randn(4, 2, 16, 2, head_dim, device="cuda:0", dtype=torch.float16)
    wrapper = flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper(torch.empty(8, device="cuda:0"), "NHD")
    places = torch.arange(3, dtype=torch.int32).to(0) * 2, torch.arange(4).int(), torch.tensor([4, 4]).int()
    wrapper.plan(*places, 4, 2, head_dim, 16, pos_encoding_mode=pos_encoding_mode, q_data_type=q.dtype)
    out = wrapper.run(q, kv)
    for i in range(2):
        k, v = (kv[2 * i : 2 * i + 2, x].flatten(0, 1)[:kv_len] for x in (0, 1))
        expected = flashinfer.decode.single_decode_with_kv_cache(q[i], k, v, pos_encoding_mode="NONE")
        torch.testing.assert_close(out[i], expected + wrong, rtol=1e-3, atol=1e-3)
'''


@pytest.fixture
def suite(tmp_path, monkeypatch):
    tests = tmp_path / "FlashMLA" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_flash_mla_sparse_prefill.py").write_text(PREFILL)
    (tmp_path / "ran").mkdir()
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    return tmp_path


def run(folder, cases, *options, test="prefill"):
    """Its exit status, what it printed, and its log."""
    package = pathlib.Path(tilewright.__file__).parents[1]
    log = folder / "log.json"
    command = [sys.executable, "-m", "tilewright.testing.peers", "flashmla", test, "--folder",
               folder / "FlashMLA", "--device", "sim:h200", "--log", log, *options]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False,
                          env={**os.environ, "CASES": cases, "PYTHONPATH": str(package)})
    return done.returncode, done.stdout, json.loads(log.read_text()) if log.exists() else None


def ran(folder):
    return sorted(path.name.rsplit("-", 1)[0] for path in (folder / "ran").iterdir())


def test_what_becomes_of_cases(suite):
    status, text, log = run(suite, "good good wrong raises")
    assert status == 1, text
    assert log["tests"]["prefill"] == {"cases": 5, "in_scope": 4, "refused": 1, "drawn": 4, "passed": 2,
                                       "failed": 2, "remaining": 0}
    assert ["as it should" in failure["text"] for failure in log["failures"]].count(True) == 1
    assert "576" in log["refused"][0]["reason"] and log["refused"][0]["cases"] == 1
    assert log["about"]["tilewright"] == tilewright.__version__ and "FAILED prefill[" in text
    assert log["about"]["device"] == "sim:h200"


def test_dense_decoding_has_its_cases_in_main(suite):
    (suite / "FlashMLA/tests/test_flash_mla_dense_decoding.py").write_text(DENSE)
    status, text, log = run(suite, "", test="dense")
    counts = {"cases": 6, "in_scope": 4, "refused": 2, "drawn": 4, "passed": 2, "failed": 2, "remaining": 0}
    assert status == 1 and log["tests"]["dense"] == counts, text
    assert all("as it should" in failure["text"] for failure in log["failures"])
    refused = {reason["reason"].split(":")[0] for reason in log["refused"]}
    assert refused == {"test_performance", "k_cache.shape[2]"}


def test_processes_share_the_cases_and_one_that_dies_is_told(suite):
    status, text, log = run(suite, "good good good", "--jobs", "2")
    assert status == 0 and log["total"]["passed"] == 3, text
    assert ran(suite) == ["good-0", "good-1", "good-2"]
    status, text, log = run(suite, "good dies", "--jobs", "2")
    assert status == 1 and log["total"]["passed"] == 1 and log["total"]["remaining"] == 1, text
    told = [failure["text"] for failure in log["failures"]]  # by the one that claimed it
    assert told in (["worker 0 of 2 ended with 7"], ["worker 1 of 2 ended with 7"])


def test_processes_are_spread_over_gpus(suite, monkeypatch):
    status, text, log = run(suite, "good good good", "--jobs", "2", "--gpus", "2")
    assert status == 0 and log["total"]["passed"] == 3 and log["about"]["gpus"] == 2, text
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    seen = [peers._gpu(4, worker).get("CUDA_VISIBLE_DEVICES") for worker in range(6)]
    assert seen == ["0", "1", "2", "3", "0", "1"] and peers._gpu(1, 5) == {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert [peers._gpu(2, worker)["CUDA_VISIBLE_DEVICES"] for worker in range(3)] == ["5", "7", "5"]
    with pytest.raises(SystemExit, match="--gpus 4: CUDA_VISIBLE_DEVICES=5,7 has 2"):
        peers._gpu(4, 0)


def test_what_needs_much_memory_is_for_few_processes_of_each_gpu(tmp_path):
    """One of a GPU above 16 GiB, three up to that, six above 2 GiB, and all below; every case is one worker's, and
    what is cut off is about the same part of each."""
    sizes = [20 << 30] * 8 + [10 << 30] * 24 + [3 << 30] * 24 + [0] * 40
    cases = [_suite._case.Case("t", {"place": place}, run=bool, bytes=size) for place, size in enumerate(sizes)]
    for gpus in (1, 4):
        options = argparse.Namespace(lines=tmp_path / f"{gpus}.jsonl", shard="0/16")
        workers = [_suite._mine(cases, worker // gpus, options) for worker in range(16)]
        shares = [[] for _ in workers]
        for turn in range(len(cases)):
            for share, worker in zip(shares, workers, strict=True):
                share.extend(itertools.islice(worker, 1))
            if turn == 1:  # 32 of 96
                begun = collections.Counter(sizes[case.parameters["place"]] for share in shares for case in share)
                assert len(begun) == 4
        assert sorted(case.parameters["place"] for share in shares for case in share) == list(range(96))
        for limit, few in ((16 << 30, 1), (6 << 30, 3), (2 << 30, 6)):
            workers = [w for w, share in enumerate(shares) if any(case.bytes > limit for case in share)]
            of_gpu = collections.Counter(worker % gpus for worker in workers)
            assert max(of_gpu.values()) <= few


def test_cases_with_the_same_inputs_run_one_after_the_other(tmp_path):
    cases = [_suite._case.Case("t", {"place": place}, run=bool, group=(place % 3,)) for place in range(9)]
    options = argparse.Namespace(lines=tmp_path / "run.jsonl", shard=None)
    order = [case.parameters["place"] % 3 for case in _suite._mine(cases, 0, options)]
    assert order == [0] * 3 + [1] * 3 + [2] * 3


# As FlashAttention's test of caches checks: what it calls may do wrong.
CHECKS = '''
import torch

def attend(q, k_cache, entries, rows, keys, call, fault):
    """Writes keys to the rows of the cache, and attends; with a fault at the third call."""
    if keys is not None:
        flat = k_cache.view(-1, *k_cache.shape[2:])
        flat[rows] = keys
        if call == 2 and fault == "key":
            flat[rows[0], 0, 0] += 1
        if call == 2 and fault == "close":
            flat[rows[0], 0, 0] *= 1.0078125
        if call == 2 and fault == "beside":
            flat[entries[0], 0, 1] += 1
    out = q + 0.001
    if call == 2 and fault == "largest":
        out[0, 0, 0] += 1
    if call == 2 and fault == "mean":
        out += 0.004
    if call == 2 and fault == "nan":
        out[0, 1, 0] = float("nan")
    if fault == "shape":
        k_cache.resize_(k_cache.shape[0] - 1, *k_cache.shape[1:])
    return out

def reference(q, factor=1.0):
    CALLS.append(q)
    return q * factor

CALLS = []

def test_cache(new_kv, page_size, has_batch_idx, dtype, exact, fault):
    torch.manual_seed(0)
    batch, seqlen, kept = 2, 8, torch.bfloat16
    entries = 4 if has_batch_idx else batch
    q = torch.randn(batch, 3, 4)
    cache_batch_idx = torch.tensor([3, 1], dtype=torch.int32) if has_batch_idx else None
    page_table = None
    if page_size is None:
        k_cache = torch.randn(entries, seqlen, 2, 4).to(kept).to(dtype)
        everything = k_cache.to(kept)
    else:
        pages = seqlen // page_size
        page_table = torch.randperm(3 * entries * pages)[:entries * pages].view(entries, pages).int()
        k_cache = torch.randn(3 * entries * pages, page_size, 2, 4).to(kept).to(dtype)
        everything = k_cache.to(kept)[page_table.flatten()].view(entries, seqlen, 2, 4)
    k_cache_ref = (everything if not has_batch_idx else everything[cache_batch_idx]).clone()
    update_mask = torch.zeros(batch, seqlen, dtype=torch.bool)
    rows, keys, others = None, None, None
    if new_kv:
        update_mask[0, 2:4], update_mask[1, 5:6] = True, True
        keys = torch.randn(3, 2, 4).to(kept).to(dtype)
        k_cache_ref[update_mask] = keys.to(kept)
        where = torch.arange(entries * seqlen).view(entries, seqlen)
        if page_size is not None:
            where = (page_table[:, :, None] * page_size + torch.arange(page_size)).view(entries, seqlen)
        chosen = where if cache_batch_idx is None else where[cache_batch_idx]
        rows, others = chosen[update_mask], chosen[~update_mask]
    out_ref, out_pt = reference(q), reference(q, factor=1.001)
    k_cache_saved = k_cache.clone()
    for call in range(4):
        print(f"{call = }")
        k_cache.copy_(k_cache_saved)
        out = attend(q, k_cache, others, rows, keys, call, fault)
        print(f"Output max diff: {(out - out_ref).abs().max().item()}")
        if new_kv:
            if page_size is None:
                selected = k_cache.to(kept) if not has_batch_idx else k_cache.to(kept)[cache_batch_idx]
            else:
                table = page_table if not has_batch_idx else page_table[cache_batch_idx]
                selected = k_cache.to(kept)[table.flatten()].view(batch, seqlen, 2, 4)
            if exact:
                assert torch.equal(selected, k_cache_ref)
            else:
                assert torch.allclose(selected, k_cache_ref, rtol=1e-2, atol=1e-3)
        assert (out - out_ref).abs().max().item() <= 2 * (out_pt - out_ref).abs().max().item() + 1e-3
        assert (out - out_ref).abs().mean().item() <= 2 * (out_pt - out_ref).abs().mean().item() + 1e-3
'''


def test_deferred_checks_find_what_the_published_ones_find(tmp_path):
    """Of every form of a case, with every fault of the third of four calls: both pass, or both fail."""
    (tmp_path / "published.py").write_text(CHECKS)
    published = types.ModuleType("published")
    exec(CHECKS, vars(published))
    module, checks = _deferred.load(tmp_path / "published.py", "deferred_here", ["test_cache"])
    memo = module.reference = _deferred.Memo(module.reference)
    dtypes = (torch.bfloat16, torch.float8_e4m3fn)
    faults = ("", "key", "close", "beside", "largest", "mean", "nan")
    outcomes = collections.Counter()
    for form in itertools.product((False, True), (None, 2), (False, True), dtypes, (False, True), faults):
        new_kv, _, _, dtype, exact, fault = form
        if fault in ("key", "close", "beside") and (not new_kv or dtype != torch.bfloat16):
            continue
        found = []
        deferred = functools.partial(module.test_cache, *form)
        for run in (functools.partial(published.test_cache, *form),
                    functools.partial(_fa3._run_deferred, checks, memo, form[:4], deferred)):
            try:
                run()
                found.append("passed")
            except AssertionError:
                found.append("failed")
        assert found[0] == found[1], form
        assert (found[0] == "passed") == (fault == "" or (fault == "close" and not exact)), form
        outcomes[found[0]] += 1
    assert outcomes["passed"] > 30 and outcomes["failed"] > 80
    # The reference is computed once for cases of a group, for each of its two forms.
    assert memo.hits > 100 and len(module.CALLS) < len(published.CALLS) / 4


def test_deferred_checks_say_what_failed_and_leave_other_statements_alone(tmp_path):
    (tmp_path / "file.py").write_text(
        "import torch\nout = []\ndef test_it(a, b, first):\n    print(a.sum().item())\n"
        "    assert (a - b).abs().max().item() <= 0.5 * (b - a).abs().mean().item() + 1\n    out.append(1)\n"
        "    assert first, 'of the host'\n    assert torch.equal(a, b)\n")
    module, checks = _deferred.load(tmp_path / "file.py", "deferred_there", ["test_it"])
    a, b = torch.zeros(2, 2), torch.tensor([[0.0, 8.0], [0.0, 0.0]])
    with pytest.raises(AssertionError, match="of the host"):
        module.test_it(a, b, False)
    assert module.out == [1]
    checks.clear()
    module.test_it(a, b, True)
    with pytest.raises(AssertionError, match=r"check 1 of 2: .*with \[8.0, 2.0\]\ncheck 2 of 2: torch.equal"):
        checks.settle()
    checks.settle()  # of nothing
    with pytest.raises(TypeError, match="known after settle"):
        bool(checks.largest(a, b) <= 1)


def test_new_keys_of_flash_attentions_caches_are_asked_for():
    """A case hands over keys and values as the file does: packed where its queries are."""
    given = {"seqlen_q": 3, "seqlen_k": 799, "d": 128, "has_batch_idx": False, "has_leftpad": True,
             "page_size": None, "rotary_interleaved": True, "has_rotary_seqlens": False,
             "seqlen_new_eq_seqlen_q": False, "causal": True, "local": False, "mha_type": "gqa",
             "dtype": torch.bfloat16}
    file = types.SimpleNamespace(DISABLE_LOCAL=False)
    for packed in (False, True):
        for turned in (0.0, 0.5):
            case = {**given, "varlen_q": packed, "new_kv": True, "rotary_fraction": turned}
            assert _fa3._kvcache(file, **case)[0] == []
            reasons = _fa3._kvcache(file, **{**case, "dtype": torch.float8_e4m3fn})[0]
            assert [reason.field for reason in reasons] == ["rotary_cos"] * (turned > 0)
    skipped = {**given, "varlen_q": False, "new_kv": False, "rotary_fraction": 0.5}
    assert _fa3._kvcache(file, **skipped)[2] == "rotary positions are of new keys"
    skipped |= {"rotary_fraction": 0.0, "has_rotary_seqlens": True}
    assert _fa3._kvcache(file, **skipped)[2] == "positions are of rotary"


def test_the_rotary_of_flash_attention_is_found_without_its_kernels(tmp_path, monkeypatch):
    (tmp_path / "flash_attn" / "layers").mkdir(parents=True)
    (tmp_path / "flash_attn" / "__init__.py").write_text("import flash_attn_2_cuda")
    (tmp_path / "flash_attn" / "layers" / "rotary.py").write_text("apply_rotary_emb = 'theirs'")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("flash_attn", "flash_attn.layers", "flash_attn.layers.rotary"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError):
        importlib.import_module("flash_attn.layers.rotary")
    _fa3._find_rotary(tmp_path)
    try:
        assert importlib.import_module("flash_attn.layers.rotary").apply_rotary_emb == "theirs"
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "flash_attn"]:
            del sys.modules[name]


def test_a_sample_is_drawn_by_the_seed(suite):
    names = []
    for seed in ("1", "1", "2"):
        status, text, _ = run(suite, " ".join(["good"] * 9), "--sample", "4", "--seed", seed, "--cases")
        assert status == 0
        names.append([line for line in text.splitlines() if line.startswith("prefill[")])
    assert len(names[0]) == 4 and names[0] == names[1] != names[2]


def test_a_deadline_leaves_a_sample_and_resume_does_the_rest(suite):
    status, text, log = run(suite, "good good good", "--deadline", "0")
    assert status == 0 and log["total"]["remaining"] == 3 and ran(suite) == []
    lines = (suite / "log.jsonl").read_text()
    status, text, log = run(suite, "good good good", "--resume", "--sample", "2", "--seed", "5")
    assert log["total"]["passed"] == 2 and len(ran(suite)) == 2
    status, text, log = run(suite, "good good good", "--resume")
    assert status == 0 and log["total"]["passed"] == 3 and len(ran(suite)) == 3, text
    assert (suite / "log.jsonl").read_text().startswith(lines)


def test_a_kill_loses_nothing(suite, monkeypatch):
    monkeypatch.setattr(peers, "GRACE", 0.0)
    lines = Lines(suite / "log.jsonl")
    lines.add(begin=0.0)
    lines.add(collected={"prefill": {"cases": 3, "in_scope": 3, "drawn": 3}}, refused={},
              about={"suite": "flashmla"})
    lines.add(case="one", test="prefill", seconds=1.0, outcome="passed")
    lines.close()
    with (suite / "log.jsonl").open("a") as file:
        file.write('{"case": "two", "te')
    assert len(list(read(suite / "log.jsonl"))) == 3
    assert peers.main(["flashmla", "--sum-up", "--log", str(suite / "log.json")]) == 0
    total = json.loads((suite / "log.json").read_text())["total"]
    assert total == {"cases": 3, "in_scope": 3, "drawn": 3, "passed": 1, "remaining": 2}
    assert Log.of(suite / "log.jsonl").progress() == "1 of 3 passed, 0 failed"


def test_cases_that_are_called_the_same_are_told_apart(monkeypatch):
    """FlashAttention-3's tests give some lengths twice: each is a case, also for the log and for --resume."""
    cases = [_suite._case.Case("t", {"a": a}, run=bool) for a in (1, 2, 1, 1)]
    module = types.SimpleNamespace(TESTS=["t"], collect=lambda *_: iter(cases))
    monkeypatch.setattr(_suite.importlib, "import_module", lambda *_: module)
    options = argparse.Namespace(suite="x", tests=[], folder=None, through="module", match=None, sample=None,
                                 deadline=None, seed=0)
    assert [case.name for case in _suite._collect(options)] == ["t[a=1]", "t[a=2]", "t[a=1]#2", "t[a=1]#3"]


def test_options_are_checked(suite):
    for options, text in ((["flashmla", "--sum-up"], "--log FILE"), (["nothing"], "invalid choice"),
                          (["fa3", "--folder", "/nowhere"], "no such folder"),
                          (["fa3", "--folder", "/", "--jobs", "2", "--gpus", "3"], "a process for each GPU")):
        done = subprocess.run([sys.executable, "-m", "tilewright.testing.peers", *options], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(pathlib.Path(tilewright.__file__).parents[1])})
        assert done.returncode == 2 and text in done.stdout


def test_flashinfer_needs_no_flashinfer(tmp_path):
    folder = tmp_path / "tests/attention"
    folder.mkdir(parents=True)
    (folder / "test_batch_decode_kernels.py").write_text(DECODE)
    log = tmp_path / "log.json"
    command = [sys.executable, "-m", "tilewright.testing.peers", "flashinfer", "decode", "--folder", tmp_path,
               "--device", "sim:h200", "--log", log]
    package = str(pathlib.Path(tilewright.__file__).parents[1])
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, "PYTHONPATH": package})
    found = json.loads(log.read_text())
    counts = {"cases": 8, "refused": 6, "in_scope": 2, "drawn": 2, "passed": 1, "failed": 1, "remaining": 0}
    assert done.returncode == 1 and found["total"] == counts, done.stdout
    assert "wrong=0.1" in found["failures"][0]["case"]
    reasons = {reason["reason"].split(":")[0]: reason["cases"] for reason in found["refused"]}
    assert reasons == {"pos_encoding_mode": 4, "head_dim": 2}


def test_deepgemm_runs_case_by_case_and_times_nothing(tmp_path):
    (tmp_path / "DeepGEMM" / "tests").mkdir(parents=True)
    (tmp_path / "DeepGEMM" / "tests" / "test_attention.py").write_text(ATTENTION)
    log = tmp_path / "log.json"
    command = [sys.executable, "-m", "tilewright.testing.peers", "deepgemm", "--folder", tmp_path / "DeepGEMM",
               "--device", "sim:h200", "--log", log]
    package = str(pathlib.Path(tilewright.__file__).parents[1])
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, "PYTHONPATH": package})
    found = json.loads(log.read_text())
    assert done.returncode == 1, done.stdout
    counts = {"cases": 5, "refused": 2, "in_scope": 3, "drawn": 3, "passed": 2, "failed": 1, "remaining": 0}
    assert found["total"] == counts
    assert "as it should" in found["failures"][0]["text"]
    assert {reason["reason"].split(":")[0] for reason in found["refused"]} == {"q[0]", "indices"}


# As SGLang's wheel is laid out, as far as the plug-in and the kit of attention tests ask.
SGLANG = {
    "srt/arg_groups/choices.py": """
ATTENTION_BACKEND_CHOICES = []
add_attention_backend_choices = ATTENTION_BACKEND_CHOICES.extend
""",
    "srt/layers/attention/attention_registry.py": """
ATTENTION_BACKENDS = {}
def register_attention_backend(name):
    return lambda make: ATTENTION_BACKENDS.setdefault(name, make)
""",
    "test/kits/attention_unittest/attention_methods/dense_attention.py": """
import types
from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

def make(backend, name, decodes):
    return types.SimpleNamespace(backend=backend, name=name,
                                 forward_mode=types.SimpleNamespace(is_decode=lambda: decodes))

def make_dense_cases(backend):
    return (make(backend, "extend", False), make(backend, "decode", True))

def make_swa_no_prefix_input_config_cases(backend):
    return (make(backend, "window", False),)

def make_swa_prefix_input_config_cases(backend):
    return (make(backend, "wrong", False),)

def run_dense_attention_case(testcase, case, *, head_dim, hidden_size, device, loc_layout="shuffled_pages"):
    assert ATTENTION_BACKENDS[case.backend].__module__ == "tilewright.integrations.sglang"
    assert (head_dim, hidden_size, device) == (64, 256, "cpu") and loc_layout != "non_monotonic_extend"
    assert case.name != "wrong", "as it should"
""",
}


def test_sglangs_kit_gets_our_backend(tmp_path):
    for name, text in SGLANG.items():
        file = tmp_path / "sglang" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "sglang-0.5.23.dist-info").mkdir()
    (tmp_path / "sglang-0.5.23.dist-info" / "METADATA").write_text("Name: sglang\nVersion: 0.5.23\n")
    log = tmp_path / "log.json"
    command = [sys.executable, "-m", "tilewright.testing.peers", "sglang", "--folder", tmp_path, "--device",
               "sim:h200", "--log", log]
    package = f"{pathlib.Path(tilewright.__file__).parents[1]}:{tmp_path}"
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, "PYTHONPATH": package})
    found = json.loads(log.read_text())
    assert done.returncode == 1, done.stdout
    assert found["tests"]["dense"]["passed"] == 2 and found["tests"]["layouts"]["passed"] == 2, done.stdout
    assert found["tests"]["layouts"]["refused"] == 1 and found["tests"]["layouts"]["skipped"] == 1
    assert found["tests"]["windows"] == {"cases": 2, "in_scope": 2, "drawn": 2, "passed": 1, "failed": 1,
                                         "remaining": 0}
    assert found["tests"]["graphs"]["skipped"] == 1
    assert [failure["case"] for failure in found["failures"]] == ["windows[name=wrong]"]
