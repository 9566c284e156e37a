// Every operator against the arrays of tools/golden/make_reference_golden.py.
#include "tests/reference/golden.h"

#include "reference/attention/attention.h"
#include "reference/linear/linear.h"
#include "reference/model/rms_norm.h"
#include "reference/moe/moe.h"
#include "reference/moe/router.h"
#include "reference/moe/swiglu.h"
#include "reference/rotation/hadamard.h"
#include "reference/rotation/rope.h"
#include "reference/top_k.h"

namespace tilewright::reference {
namespace {

using nlohmann::json;

TEST(Golden, Attention) {
  for (const json& test : golden_cases("attention")) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const auto sink = golden_doubles(test, "sink");
    const auto cu_seqlens_q = golden_ints(test, "cu_seqlens_q");
    const auto cu_seqlens_kv = golden_ints(test, "cu_seqlens_kv");
    const auto kv_lens = golden_ints(test, "kv_lens");
    const auto page_table = golden_ints(test, "page_table");
    AttentionParams params{.batch = test["batch"],
                           .heads = test["heads"],
                           .kv_heads = test["kv_heads"],
                           .q_len = test["q_len"],
                           .kv_len = test["kv_len"],
                           .head_dim = test["head_dim"],
                           .v_head_dim = test["v_head_dim"],
                           .softcap = test["softcap"],
                           .causal = test["causal"],
                           .window_left = test["window_left"],
                           .window_right = test["window_right"],
                           .sink = sink,
                           .cu_seqlens_q = cu_seqlens_q,
                           .cu_seqlens_kv = cu_seqlens_kv,
                           .kv_lens = kv_lens,
                           .page_table = page_table,
                           .page_size = test["page_size"]};
    if (test.contains("scale")) params.scale = test["scale"].get<double>();
    const auto result = attention(params, golden_doubles(test, "q"), golden_doubles(test, "k"),
                                  golden_doubles(test, "v"));
    expect_close(result.out, golden_doubles(test, "out"));
    expect_close(result.lse, golden_doubles(test, "lse"));
    expect_close(result.lse_with_sink, golden_doubles(test, "lse_with_sink"));
  }
}

TEST(Golden, Linear) {
  for (const json& test : golden_cases("linear")) {
    const LinearShape shape{test["m"], test["n"], test["k"]};
    const auto x = golden_doubles(test, "x");
    const auto w = golden_doubles(test, "w");
    expect_close(linear(shape, x, w, golden_doubles(test, "bias")), golden_doubles(test, "out"));
    expect_close(linear_magnitude(shape, x, w), golden_doubles(test, "magnitude"));
  }
}

SwigluParams swiglu_params(const json& test) {
  return {golden_number(test["limit"]), test["alpha"], test["up_offset"]};
}

TEST(Golden, Swiglu) {
  for (const json& test : golden_cases("swiglu")) {
    SCOPED_TRACE(test["limit"].dump());
    expect_close(
        swiglu(golden_doubles(test, "gate"), golden_doubles(test, "up"), swiglu_params(test)),
        golden_doubles(test, "out"));
  }
}

// Arrays of one MLP stack of a case; the spans of weights() point into it.
struct MlpArrays {
  MlpArrays(const json& test, const std::string& prefix) {
    const char* names[6] = {"gate", "up", "down", "gate_bias", "up_bias", "down_bias"};
    for (int i = 0; i < 6; ++i) arrays[i] = golden_doubles(test, (prefix + names[i]).c_str());
  }
  MlpWeights weights() const {
    return {arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5]};
  }
  std::vector<double> arrays[6];
};

TEST(Golden, Moe) {
  for (const json& test : golden_cases("moe")) {
    SCOPED_TRACE(test["name"].get<std::string>());
    const MoeParams params{.tokens = test["tokens"],
                           .hidden = test["hidden"],
                           .inter = test["inter"],
                           .experts = test["experts"],
                           .topk = test["topk"],
                           .shared_inter = test["shared_inter"],
                           .activation = swiglu_params(test),
                           .route_weight_place = test["weight_before_down"]
                                                     ? RouteWeightPlace::kBeforeDown
                                                     : RouteWeightPlace::kAfterDown};
    const MlpArrays routed(test, "routed_");
    const MlpArrays shared(test, "shared_");
    expect_close(moe(params, golden_doubles(test, "x"), golden_ints(test, "ids"),
                     golden_doubles(test, "weights"), routed.weights(), shared.weights()),
                 golden_doubles(test, "out"));
  }
}

TEST(Golden, Router) {
  for (const json& test : golden_cases("router")) {
    const RouterParams params{
        .tokens = test["tokens"],
        .experts = test["experts"],
        .topk = test["topk"],
        .score = test["score"] == "softmax" ? RouterScore::kSoftmax : RouterScore::kSqrtSoftplus,
        .normalize = test["normalize"],
        .scale = test["scale"]};
    const auto logits = golden_doubles(test, "logits");
    const Routing routing = test.contains("table")
                                ? route_by_hash(params, logits, golden_ints(test, "token_ids"),
                                                golden_ints(test, "table"))
                                : route_by_score(params, logits, golden_doubles(test, "bias"));
    EXPECT_EQ(routing.ids, golden_ints(test, "ids"));
    expect_close(routing.weights, golden_doubles(test, "weights"));
    expect_close(routing.scores, golden_doubles(test, "scores"));
  }
}

TEST(Golden, TopK) {
  for (const json& test : golden_cases("top_k")) {
    SCOPED_TRACE(test.dump());
    EXPECT_EQ(top_k(golden_doubles(test, "values"), test["k"]), golden_ints(test, "indices"));
  }
}

TEST(Golden, RmsNorm) {
  for (const json& test : golden_cases("rms_norm")) {
    expect_close(rms_norm({test["rows"], test["dim"], test["eps"]}, golden_doubles(test, "x"),
                          golden_doubles(test, "weight")),
                 golden_doubles(test, "out"));
  }
}

TEST(Golden, RopeFrequencies) {
  for (const json& test : golden_cases("rope_frequencies")) {
    const auto frequencies = test.contains("factor")
                                 ? yarn_frequencies(test["rotary_dim"], test["theta"],
                                                    {test["factor"], test["original_max_pos"],
                                                     test["beta_fast"], test["beta_slow"]})
                                 : rope_frequencies(test["rotary_dim"], test["theta"]);
    expect_close(frequencies, golden_doubles(test, "frequencies"));
  }
}

TEST(Golden, Rope) {
  for (const json& test : golden_cases("rope")) {
    const RopeParams params{
        .tokens = test["tokens"],
        .heads = test["heads"],
        .head_dim = test["head_dim"],
        .rotary_dim = test["rotary_dim"],
        .direction = test["is_inverse"] ? RopeDirection::kInverse : RopeDirection::kForward};
    expect_close(rope(params, golden_doubles(test, "x"), golden_ints(test, "positions"),
                      golden_doubles(test, "frequencies")),
                 golden_doubles(test, "out"));
  }
}

TEST(Golden, Hadamard) {
  for (const json& test : golden_cases("hadamard")) {
    SCOPED_TRACE(test["dim"].dump());
    expect_close(hadamard({test["rows"], test["dim"], test["scale"]}, golden_doubles(test, "x"),
                          golden_doubles(test, "signs")),
                 golden_doubles(test, "out"));
  }
}

}  // namespace
}  // namespace tilewright::reference
