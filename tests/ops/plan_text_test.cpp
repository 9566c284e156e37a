// How the plans of all operators read, on the simulated H200 and B200: golden files, one an
// operator. To accept new texts: TILEWRIGHT_REBASE=1 build/release/bin/ops_tests
// --gtest_filter='PlanText.*', and read the difference.
#include "tilewright/attention.h"
#include "tilewright/attention_decode.h"
#include "tilewright/attention_merge.h"
#include "tilewright/attention_prepare.h"
#include "tilewright/block_scaled_linear.h"
#include "tilewright/compressor.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/indexer.h"
#include "tilewright/indexer_logits.h"
#include "tilewright/latent_attention.h"
#include "tilewright/linear.h"
#include "tilewright/mask_lists.h"
#include "tilewright/moe.h"
#include "tilewright/peer_reduce.h"
#include "tilewright/quantize.h"
#include "tilewright/sample.h"
#include "tilewright/sparse_attention.h"

#include "base/error.h"
#include "base/file.h"
#include "device/kernel_registry.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <tuple>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

// Texts of one operator, each below a title.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : path_(std::string(TILEWRIGHT_TEST_DATA) + "/plans/" + name + ".txt") {}

  void add(const std::string& title, const std::function<Plan()>& plan) {
    add_text(title, [&] { return plan().to_string(); });
  }
  void add_summary(const std::string& title, const std::function<Plan()>& plan) {
    add_text(title, [&] { return plan().summary("--all"); });
  }
  // A text, or what is said instead.
  void add_text(const std::string& title, const std::function<std::string()>& text) {
    text_ += "== " + title + "\n";
    try {
      text_ += text();
    } catch (const Error& error) {
      text_ += std::string(error.what()) + "\n";
    }
    text_ += "\n";
  }
  void check() const {
    if (std::getenv("TILEWRIGHT_REBASE") != nullptr) {
      write_file(path_, text_);
      GTEST_SKIP() << "wrote " << path_;
    }
    std::ifstream file(path_);
    const std::string golden((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(text_, golden) << "TILEWRIGHT_REBASE=1 accepts the new text";
  }

 private:
  std::string path_, text_;
};

class PlanText : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
  static const Device& h200() {
    static const Device device = Device::open("sim:h200");
    return device;
  }
  static const Device& b200() {
    static const Device device = Device::open("sim:b200");
    return device;
  }
};

AttentionProblem attention(std::int64_t tokens, std::int64_t head_dim, bool causal = false) {
  return {.batch = 2,
          .heads = 16,
          .kv_heads = 4,
          .q_len = tokens,
          .kv_len = tokens,
          .head_dim = head_dim,
          .causal = causal};
}

TEST_F(PlanText, Attention) {
  Golden golden("attention");
  const auto on = [](const Device& device, AttentionProblem p, const char* kernel = "auto") {
    return [&device, p, kernel]() mutable {
      p.kernel = kernel;
      return plan_attention(device, p);
    };
  };
  AttentionProblem special = attention(1000, 64, true);
  special.window_left = 100, special.softcap = 20, special.has_sink = special.has_lse = true;
  AttentionProblem fp8 = attention(4096, 128);
  fp8.dtype = DType::kF8_E4M3, fp8.fp8.scales = ScaleSharing::kHead;
  AttentionProblem packed = attention(300, 128);
  packed.is_packed = true, packed.total_q = packed.total_kv = 500;
  golden.add("H200, 8192 tokens, causal", on(h200(), attention(8192, 128, true)));
  golden.add_summary("H200, 8192 tokens, causal, in short", on(h200(), attention(8192, 128, true)));
  golden.add("H200, window, softcap, sink, lse", on(h200(), special));
  golden.add("H200, packed", on(h200(), packed));
  golden.add("H200, e4m3", on(h200(), fp8));
  golden.add("H200, k1", on(h200(), attention(256, 64), "k1"));
  golden.add("H200, k8", on(h200(), attention(1024, 128), "k8"));
  golden.add("H200, no queries", on(h200(), attention(0, 128)));
  golden.add("H200, head_dim 96", on(h200(), attention(256, 96)));
  golden.add("H200, head_dim 320", on(h200(), attention(256, 320)));
  golden.add("H200, k2 with a softcap", on(h200(), special, "k2"));
  golden.add("H200, a kernel of another chip", on(h200(), attention(256, 128), "sm100_e"));
  golden.add("H200, no such kernel", on(h200(), attention(256, 128), "k9"));
  golden.add("B200, 4096 tokens", on(b200(), attention(4096, 128)));
  golden.add_summary("B200, head_dim 256, in short", on(b200(), attention(4096, 256)));
  golden.check();
}

TEST_F(PlanText, AttentionMergeAndMaskLists) {
  Golden golden("attention_merge");
  const AttentionMergeProblem merge = {
      .parts = 8, .rows = 500, .heads = 8, .head_dim = 128, .has_sink = true, .has_lse = true};
  AttentionMergeProblem wrong = merge;
  wrong.head_dim = 100, wrong.parts = 0;
  golden.add("H200, 8 parts", [&] { return plan_attention_merge(h200(), merge); });
  golden.add("B200, 8 parts", [&] { return plan_attention_merge(b200(), merge); });
  golden.add("H200, no parts", [&] { return plan_attention_merge(h200(), wrong); });
  const MaskListsProblem lists = {
      .batch = 2, .rows = 500, .keys = 9000, .key_block = 64, .topk = 2048, .page_size = 64};
  MaskListsProblem bits = lists;
  bits.entry = MaskEntry::kBits, bits.page_size = 0, bits.key_block = 1, bits.query_block = 128;
  golden.add("H200, bytes, slots", [&] { return plan_mask_lists(h200(), lists); });
  golden.add("B200, bits", [&] { return plan_mask_lists(b200(), bits); });
  golden.check();
}

TEST_F(PlanText, CacheAppend) {
  Golden golden("cache_append");
  const CacheAppendProblem p = {.dtype = DType::kF16,
                                .kv_dtype = DType::kF8_E4M3,
                                .batch = 4,
                                .kv_heads = 8,
                                .head_dim = 128,
                                .is_packed = true,
                                .total_new = 700,
                                .page_size = 64,
                                .num_pages = 900,
                                .max_pages = 100};
  CacheAppendProblem turned = p;
  turned.heads = 32, turned.q_len = 2, turned.rotary = RotaryPairs::kHalves;
  turned.rotary_dim = 64, turned.max_position = 4096, turned.has_rotary_lengths = true;
  CacheAppendProblem wrong = turned;
  wrong.rotary_dim = 72, wrong.new_len = 3;
  CacheAppendProblem idle = p;
  idle.total_new = 0;
  golden.add("H200, packed", [&] { return plan_cache_append(h200(), p); });
  golden.add("B200, turned", [&] { return plan_cache_append(b200(), turned); });
  golden.add("H200, packed and not", [&] { return plan_cache_append(h200(), wrong); });
  golden.add("H200, no tokens", [&] { return plan_cache_append(h200(), idle); });
  golden.check();
}

TEST_F(PlanText, AttentionPrepare) {
  Golden golden("attention_prepare");
  const AttentionPrepareProblem p = {
      .batch = 2, .heads = 8, .kv_heads = 2, .q_len = 500, .kv_len = 700, .head_dim = 128};
  AttentionPrepareProblem plain = p;
  plain.scales = ScaleSharing::kHead, plain.is_rotated = false;
  plain.v_layout = Fp8ValueLayout::kRows;
  plain.rope = RotaryPairs::kHalves, plain.rope_positions = 1000;
  golden.add("H200, rotated, scales of blocks", [&] { return plan_attention_prepare(h200(), p); });
  golden.add("H200, scales of heads, RoPE", [&] { return plan_attention_prepare(h200(), plain); });
  golden.add("B200", [&] { return plan_attention_prepare(b200(), p); });
  golden.check();
}

TEST_F(PlanText, Decode) {
  Golden golden("decode");
  const AttentionDecodeProblem p = {
      .batch = 2, .heads = 32, .kv_heads = 8, .head_dim = 128, .max_len = 4096};
  const auto on = [&p](const Device& device, std::function<void(AttentionDecodeProblem&)> change) {
    return [&device, p, change] {
      AttentionDecodeProblem changed = p;
      change(changed);
      return plan_attention_decode(device, changed);
    };
  };
  const auto pages = [](std::int64_t size) {
    return [size](AttentionDecodeProblem& q) {
      q.max_len = 0, q.page_size = size, q.num_pages = 300, q.max_pages = 100;
    };
  };
  golden.add("H200", on(h200(), [](auto&) {}));
  golden.add("H200, pages of 16", on(h200(), pages(16)));
  golden.add("H200, pages of 24", on(h200(), pages(24)));
  golden.add("H200, e4m3, appended, rotated", on(h200(), [](auto& q) {
               q.kv_dtype = DType::kF8_E4M3, q.q_len = 3, q.batch = 64;
               q.append = {.is_wanted = true,
                           .rotary = RotaryPairs::kHalves,
                           .rotary_dim = 64,
                           .max_position = 5000};
             }));
  golden.add("H200, 4 parts", on(h200(), [](auto& q) { q.splits = 4; }));
  golden.add("H200, no queries", on(h200(), [](auto& q) { q.batch = 0; }));
  golden.add("H200, r16_tma with pages of 24", on(h200(), [&](auto& q) {
               pages(24)(q);
               q.kernel = "r16_tma";
             }));
  golden.add("B200", on(b200(), [](auto&) {}));
  golden.check();
}

TEST_F(PlanText, SparseAttention) {
  Golden golden("sparse_attention");
  const auto decode = [](std::int64_t heads) {
    return SparseAttentionProblem{
        .batch = 128,
        .q_len = 2,
        .heads = heads,
        .window = {.cache = {.page_size = 256, .num_pages = 1000}, .topk = 128},
        .compressed = {.cache = {.page_size = 64, .num_pages = 9000}, .topk = 512}};
  };
  for (const std::int64_t heads : {12, 64, 128}) {
    golden.add(fmt::format("H200, {} heads", heads),
               [&] { return plan_sparse_attention(h200(), decode(heads)); });
  }
  golden.add("H200, prefill", [&] {
    return plan_sparse_attention(h200(), sparse_prefill_problem(4000, 64, 4096, 512));
  });
  for (const std::int64_t heads : {12, 64}) {
    golden.add(fmt::format("B200, {} heads", heads),
               [&] { return plan_sparse_attention(b200(), decode(heads)); });
  }
  golden.check();
}

TEST_F(PlanText, LatentAttention) {
  Golden golden("latent_attention");
  golden.add("H200, 128 heads of 576", [] {
    return plan_latent_attention(h200(), mla_decode_problem(128, 1, 128, 9000, 128));
  });
  golden.add("H200, two queries", [] {
    return plan_latent_attention(h200(), mla_decode_problem(128, 2, 128, 9000, 128));
  });
  golden.add("H200, values of 256 in f16, no pages", [] {
    return plan_latent_attention(h200(), {.dtype = DType::kF16,
                                          .batch = 4,
                                          .q_len = 1000,
                                          .heads = 8,
                                          .kv_heads = 4,
                                          .value_dim = 256,
                                          .has_qv = false,
                                          .max_len = 1000,
                                          .causal = false,
                                          .has_sink = true});
  });
  golden.add("B200", [] {
    return plan_latent_attention(b200(), mla_decode_problem(128, 1, 128, 9000, 128));
  });
  for (const auto& [title, value_dim, has_qv] :
       {std::tuple{"B200, values of 256 that make scores", 256, true},
        std::tuple{"B200, values of 256", 256, false},
        std::tuple{"B200, values of 512", 512, false}}) {
    golden.add(title, [=] {
      return plan_latent_attention(
          b200(),
          {.batch = 4, .heads = 8, .value_dim = value_dim, .has_qv = has_qv, .max_len = 1000});
    });
  }
  golden.check();
}

TEST_F(PlanText, Linear) {
  Golden golden("linear");
  const LinearWeightInfo w4a16 = {NumberFormat::kNvfp4, LinearActivations::kBf16, 7168, 7168};
  const LinearWeightInfo w4a8 = {NumberFormat::kMxfp4, LinearActivations::kFp8, 4096, 2048};
  const LinearWeightInfo w8a8 = {NumberFormat::kFp8, LinearActivations::kFp8, 512, 512};
  golden.add("H200, 8 rows", [&] { return plan_linear(h200(), w4a16, {.m = 8}); });
  golden.add_summary("H200, 8 rows, in short",
                     [&] { return plan_linear(h200(), w4a16, {.m = 8}); });
  golden.add_summary("H200, 4096 rows, fp8",
                     [&] { return plan_linear(h200(), w4a8, {.m = 4096}); });
  golden.add_summary("H200, a small layer", [&] { return plan_linear(h200(), w8a8, {.m = 64}); });
  golden.add_summary("H200, band",
                     [&] { return plan_linear(h200(), w8a8, {.m = 64, .kernel = "band"}); });
  golden.add_summary("H200, no rows", [&] { return plan_linear(h200(), w8a8, {.m = 0}); });
  golden.add("H200, direct for fp8",
             [&] { return plan_linear(h200(), w8a8, {.m = 8, .kernel = "direct"}); });
  golden.add("B200", [&] { return plan_linear(b200(), w8a8, {.m = 8}); });
  const LinearWeightInfo bf16 = {NumberFormat::kBf16, LinearActivations::kBf16, 7168, 7168};
  golden.add_summary("B200, bf16, 8 rows", [&] { return plan_linear(b200(), bf16, {.m = 8}); });
  golden.add("B200, bf16, 8192 rows", [&] { return plan_linear(b200(), bf16, {.m = 8192}); });
  golden.check();
}

TEST_F(PlanText, BlockScaledLinear) {
  Golden golden("block_scaled_linear");
  const BlockScaledWeightInfo nvfp4 = {NumberFormat::kNvfp4, 4096, 7168};
  const BlockScaledWeightInfo mxfp4 = {NumberFormat::kMxfp4, 512, 1024};
  const auto on = [](const Device& device, const BlockScaledWeightInfo& w, BlockScaledProblem p) {
    return [&device, w, p] { return plan_block_scaled_linear(device, w, p); };
  };
  golden.add("B200, NVFP4, 4096 rows", on(b200(), nvfp4, {.m = 4096}));
  golden.add("B200, NVFP4, requantised", on(b200(), nvfp4, {.m = 100, .out_dtype = DType::kF4}));
  golden.add_summary("B200, MXFP8 by MXFP4, in short", on(b200(), mxfp4, {.m = 64}));
  golden.add("B200, no rows", on(b200(), mxfp4, {.m = 0}));
  BlockScaledWeightInfo gate_up = mxfp4;
  gate_up.is_gate_up = true;
  golden.add("B200, gate and up", on(b200(), gate_up, {.m = 64, .out_dtype = DType::kF8_E4M3}));
  golden.add("H200", on(h200(), nvfp4, {.m = 64}));
  golden.check();
}

TEST_F(PlanText, Moe) {
  Golden golden("moe");
  const MoeWeightsInfo flash = {
      NumberFormat::kMxfp4, LinearActivations::kFp8, 256, 4096, 2048, true};
  MoeWeightsInfo bf16 = flash;
  bf16.format = NumberFormat::kNvfp4, bf16.activations = LinearActivations::kBf16;
  MoeProblem logits = {.tokens = 7, .topk = 6, .routing = MoeRouting::kLogits};
  logits.score = MoeScore::kSqrtSoftplus, logits.has_bias = true, logits.swiglu_limit = 10;
  golden.add("H200, 7 tokens, by logits", [&] { return plan_moe(h200(), flash, logits); });
  golden.add("H200, 7 tokens, half of the experts", [&] {
    MoeWeightsInfo half = flash;
    half.experts = 128, half.has_shared = false;
    MoeProblem share = logits;
    share.all_experts = 256, share.first_expert = 128;
    return plan_moe(h200(), half, share);
  });
  golden.add("H200, 2048 tokens, fp8",
             [&] { return plan_moe(h200(), flash, {.tokens = 2048, .topk = 6}); });
  golden.add("H200, 2048 tokens, bf16",
             [&] { return plan_moe(h200(), bf16, {.tokens = 2048, .topk = 6}); });
  golden.add("H200, no tokens", [&] { return plan_moe(h200(), bf16, {.tokens = 0, .topk = 6}); });
  golden.add("B200", [&] { return plan_moe(b200(), flash, logits); });
  MoeWeightsInfo native = flash;
  native.activations = LinearActivations::kBlockScaled;
  golden.add("B200, block-scaled", [&] { return plan_moe(b200(), native, logits); });
  native.format = NumberFormat::kNvfp4;
  golden.add("B200, block-scaled NVFP4, 8192 tokens",
             [&] { return plan_moe(b200(), native, {.tokens = 8192, .topk = 6}); });
  native.has_shared = false;
  golden.add("B200, block-scaled NVFP4, grouped", [&] {
    return plan_moe(
        b200(), native,
        {.tokens = 512, .topk = 1, .routing = MoeRouting::kGrouped, .expected_tokens = 16});
  });
  golden.check();
}

TEST_F(PlanText, Quantize) {
  Golden golden("quantize");
  QuantizeProblem p = {.rows = 100, .cols = 500};
  golden.add("H200, nvfp4", [&] { return plan_quantize(h200(), p); });
  p.format = "fp8_1x128", p.has_block_major_scales = true;
  golden.add("H200, fp8_1x128", [&] { return plan_quantize(h200(), p); });
  golden.add("on the host", [&] { return plan_quantize_on_host(p); });
  p.rows = 0;
  golden.add("H200, nothing", [&] { return plan_quantize(h200(), p); });
  golden.add("B200", [&] { return plan_quantize(b200(), p); });
  golden.check();
}

TEST_F(PlanText, Indexer) {
  Golden golden("indexer");
  const IndexerProblem p = {.heads = 64,
                            .topk = 512,
                            .ratio = 4,
                            .max_len = 100000,
                            .keys = {.page_size = 64, .num_pages = 2000}};
  IndexerProblem fp8 = p;
  fp8.format = NumberFormat::kFp8, fp8.heads = 12, fp8.max_len = 1000;
  golden.add("H200, 64 heads", [&] { return plan_indexer(h200(), p, 3, 2); });
  golden.add("H200, 12 heads, fp8, equally long", [&] { return plan_indexer(h200(), fp8, 8, 4); });
  golden.add("H200, no tokens", [&] { return plan_indexer(h200(), p, 0, 0); });
  golden.add("B200", [&] { return plan_indexer(b200(), p, 3, 2); });
  const IndexerLogitsProblem pages = {.max_len = 4096, .keys = {.num_pages = 100}};
  const IndexerLogitsProblem ranges = {
      .format = NumberFormat::kMxfp4, .heads = 32, .max_len = 8192, .is_compressed = true};
  IndexerLogitsProblem wrong = pages;
  wrong.heads = 0, wrong.max_len = -4, wrong.is_compressed = true;
  golden.add("H200, from codes, in pages",
             [&] { return plan_indexer_logits(h200(), pages, 256, 128); });
  golden.add("H200, from codes, ranges of keys without pages",
             [&] { return plan_indexer_logits(h200(), ranges, 8192, 1); });
  golden.add("B200, the same", [&] { return plan_indexer_logits(b200(), ranges, 8192, 1); });
  golden.add("H200, from codes, everything wrong",
             [&] { return plan_indexer_logits(h200(), wrong, -1, 1 << 20); });
  golden.check();
}

TEST_F(PlanText, Caches) {
  Golden golden("caches");
  const KvCacheLayout pages = {.page_size = 64, .num_pages = 2000};
  const CompressorProblem csa = {.cache = pages, .state_slots = 8};
  CompressorProblem keys = csa;
  keys.kind = CompressorKind::kIndexMxfp4;
  golden.add("H200, a step", [&] {
    return plan_kv_cache(h200(), pages, {.tokens = 6, .heads = 64, .list_len = 128});
  });
  golden.add("H200, rows read", [&] { return plan_kv_cache(h200(), pages, {.read_rows = 500}); });
  golden.add("H200, compressor", [&] { return plan_compressor(h200(), csa, 8, 2); });
  golden.add("H200, compressor, a prompt", [&] { return plan_compressor(h200(), keys, 1, 4096); });
  golden.add("H200, inverse rope", [&] { return plan_inverse_rope(h200(), 100, 64); });
  golden.add("H200, inverse rope, codes", [&] { return plan_inverse_rope(h200(), 100, 64, true); });
  golden.add("B200, a step", [&] {
    return plan_kv_cache(b200(), pages, {.tokens = 6, .heads = 64, .list_len = 128});
  });
  golden.check();
}

TEST_F(PlanText, HyperConnection) {
  Golden golden("hyper_connection");
  const HyperConnectionProblem p = {
      .tokens = 8, .hidden = 4096, .has_merge = true, .has_second = true};
  HyperConnectionProblem one = p, merge = p, head = p;
  one.tokens = 1;
  merge.has_mix = false, merge.stream_dtype = DType::kF32;
  head.is_head = true, head.tokens = 8192;
  golden.add("H200, a step", [&] { return plan_hyper_connection(h200(), p); });
  golden.add("H200, a step of one token", [&] { return plan_hyper_connection(h200(), one); });
  golden.add("H200, the merge alone", [&] { return plan_hyper_connection(h200(), merge); });
  golden.add("B200, the head", [&] { return plan_hyper_connection(b200(), head); });
  golden.add("H200, embedding", [&] {
    return plan_hyper_embedding(h200(), {.tokens = 8, .hidden = 4096, .vocab = 129280});
  });
  golden.add("B200, norm", [&] { return plan_rms_norm(b200(), {.rows = 100, .cols = 1024}); });
  golden.check();
}

TEST_F(PlanText, Sample) {
  Golden golden("sample");
  golden.add("H200, V4's vocabulary",
             [&] { return plan_sample(h200(), {.rows = 64, .vocab = 129280}); });
  golden.add("B200, of two ranks, bf16", [&] {
    return plan_sample(b200(),
                       {.rows = 1, .vocab = 129280, .logits_dtype = DType::kBF16, .parts = 2});
  });
  golden.add("H200, bytes", [&] { return plan_sample(h200(), {.rows = 2, .vocab = 256}); });
  golden.add("H200, rows",
             [&] { return plan_gather_rows(h200(), {.rows = 64, .x_rows = 2048, .cols = 4096}); });
  golden.check();
}

TEST_F(PlanText, PeerRows) {
  Golden golden("peer_rows");
  golden.add("H200, a token each", [&] {
    return plan_peer_rows(h200(),
                          {.counts = {4096, 4096}, .dtype = DType::kBF16, .most_bytes = 2 << 20});
  });
  golden.add("B200, uneven parts of sums", [&] {
    return plan_peer_rows(
        b200(),
        {.kind = PeerRowsKind::kScatter, .counts = {64 * 4096, 4096, 0}, .most_bytes = 2 << 20});
  });
  golden.check();
}

TEST_F(PlanText, PeerReduce) {
  Golden golden("peer_reduce");
  golden.add("H200, a row", [&] { return plan_peer_reduce(h200(), {.count = 4096}); });
  golden.add("B200, eight ranks", [&] {
    return plan_peer_reduce(b200(), {.ranks = 8, .count = 32768, .dtype = DType::kBF16});
  });
  golden.check();
}

}  // namespace
}  // namespace tilewright
