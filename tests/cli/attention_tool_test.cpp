// `tilewright attention` and `tilewright ladder` as a user runs them, on the simulator.
#include "base/npy.h"
#include "base/safetensors.h"
#include "base/safetensors_writer.h"
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDevice = "--device sim:h200 ";

class AttentionTool : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome info = run_tool("info --json");
    if (info.parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
    write("q", {20, 2, 64}, 1);
    write("k", {30, 1, 64}, 2);
    write("v", {30, 1, 64}, 3);
  }
  void write(const std::string& name, const std::vector<std::int64_t>& shape, int seed) {
    HostTensor tensor(DType::kF32, shape);
    int i = seed;
    for (float& x : tensor.elems<float>()) x = std::sin(static_cast<float>(i += 7));
    write_npy(folder_ / (name + ".npy"), tensor.view());
  }
  void write_lengths(const std::string& name, const std::vector<std::int32_t>& starts) {
    const auto count = static_cast<std::int64_t>(starts.size());
    write_npy(folder_ / (name + ".npy"),
              contiguous_view(static_cast<const void*>(starts.data()), DType::kI32, {count}));
  }
  std::string files() const {
    return "--q " + path("q.npy") + " --k " + path("k.npy") + " --v " + path("v.npy") + " ";
  }
  Outcome attention(const std::string& arguments) const {
    return run_tool(std::string(kDevice) + "attention " + files() + arguments);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  ScopedFolder folder_;
};

TEST_F(AttentionTool, ComputesChecksAndWrites) {
  const std::string out = path("out.npy"), lse = path("lse.npy");
  const Outcome run =
      attention("--causal --window 9 --softcap 5 --check --out " + out + " --lse-out " + lse);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("heads 2/1, queries 20, keys 30, head_dim 64, causal, "
                                 "window 9 back, softcap 5, lse"));
  EXPECT_THAT(run.out, HasSubstr("check      correct: max error"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("TFLOP/s"))) << "a simulator has no times";
  EXPECT_EQ(read_npy(out).shape(), (std::vector<std::int64_t>{20, 2, 64}));
  EXPECT_EQ(read_npy(out).dtype(), DType::kF32);
  EXPECT_EQ(read_npy(lse).shape(), (std::vector<std::int64_t>{1, 2, 20}));
}

// Each sequence of a packed run, alone, gives the same rows.
TEST_F(AttentionTool, TakesPackedSequences) {
  write_lengths("cu_q", {0, 7, 7, 20});
  write_lengths("cu_k", {0, 11, 13, 30});
  const std::string packing =
      "--cu-seqlens-q " + path("cu_q.npy") + " --cu-seqlens-k " + path("cu_k.npy") + " ";
  const std::string out = path("out.npy"), lse = path("lse.npy");
  for (const std::string kernel : {"k5", "k6"}) {
    const Outcome run = attention(packing + "--causal --check --kernel " + kernel + " --out " +
                                  out + " --lse-out " + lse);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("batch 3, heads 2/1, queries 13, keys 17, head_dim 64, "
                                   "packed (20 and 30 rows), causal"));
    EXPECT_THAT(run.out, HasSubstr("check      correct: max error"));
  }
  EXPECT_EQ(read_npy(out).shape(), (std::vector<std::int64_t>{20, 2, 64}));
  EXPECT_EQ(read_npy(lse).shape(), (std::vector<std::int64_t>{2, 20}));
  for (const std::string scales : {"tensor", "head", "block"}) {
    const Outcome run = attention(packing + "--check --dtype e4m3 --rotate --scales " + scales);
    EXPECT_THAT(run.out, HasSubstr("check      correct: max error")) << scales << run.err;
  }
  // Bottom-right: query i of the last sees keys up to i + 17 - 13. 7 * 11 - 21 + 13 * 17 - 78.
  const nlohmann::json report = attention(packing + "--causal --plan --json").parsed();
  EXPECT_EQ(report["plan"]["flops"], 4.0 * 64 * 2 * (56 + 143));
}

TEST_F(AttentionTool, PackedRowsAreCheckedWhereTheyBelong) {
  const std::string packing = "--cu-seqlens-q 0,7,20 --cu-seqlens-k 0,11,30 ";
  const std::string packed = path("packed.npy"), alone = path("alone.npy");
  ASSERT_EQ(attention(packing + "--kernel k5 --out " + packed).status, 0);
  const auto cut = [&](const std::string& name, std::int64_t heads, std::int64_t first) {
    const HostTensor whole = read_npy(path(name + ".npy"));
    const std::int64_t rows = whole.shape()[0] - first;
    write_npy(
        folder_ / ("last_" + name + ".npy"),
        contiguous_view(
            static_cast<const void*>(
                whole.elems<float>().subspan(static_cast<std::size_t>(first * heads * 64)).data()),
            DType::kF32, {rows, heads, 64}));
  };
  cut("q", 2, 7);
  cut("k", 1, 11);
  cut("v", 1, 11);
  ASSERT_EQ(
      run_tool(std::string(kDevice) + "attention --q " + path("last_q.npy") + " --k " +
               path("last_k.npy") + " --v " + path("last_v.npy") + " --kernel k5 --out " + alone)
          .status,
      0);
  const HostTensor both = read_npy(packed), last = read_npy(alone);
  const auto rows = both.elems<float>().subspan(7 * 2 * 64);
  ASSERT_EQ(rows.size(), last.elems<float>().size());
  EXPECT_TRUE(std::ranges::equal(rows, last.elems<float>()));
}

TEST_F(AttentionTool, RefusesLengthsThatMakeNoSense) {
  const auto error_of = [&](const std::vector<std::int32_t>& q, const std::vector<std::int32_t>& k,
                            const std::string& more = "") {
    write_lengths("cu_q", q);
    write_lengths("cu_k", k);
    const Outcome run = attention("--cu-seqlens-q " + path("cu_q.npy") + " --cu-seqlens-k " +
                                  path("cu_k.npy") + " " + more);
    EXPECT_EQ(run.status, 1);
    return run.err;
  };
  EXPECT_THAT(error_of({0, 7, 19}, {0, 11, 30}), HasSubstr("ends with 19; the tensor has 20 rows"));
  EXPECT_THAT(error_of({0, 7, 5, 20}, {0, 1, 2, 30}), HasSubstr("has 5 at index 2 after 7"));
  EXPECT_THAT(error_of({1, 20}, {0, 30}), HasSubstr("has 1 at index 0; expected 0 first"));
  EXPECT_THAT(error_of({0, 20}, {0, 11, 30}), HasSubstr("has 1 sequences"));
  EXPECT_THAT(error_of({0, 7, 20}, {0, 11, 30}, "--kernel k2"),
              HasSubstr("kernel k2 does not support packed sequences"));
  EXPECT_THAT(attention("--cu-seqlens-q " + path("q.npy")).err,
              HasSubstr("is F32 [20, 2, 64]; expected I32 or I64 of shape [sequences + 1]"));
  EXPECT_THAT(attention("--cu-seqlens-q " + path("cu_q.npy")).err, HasSubstr("(for the keys too)"));
  EXPECT_THAT(attention("--cu-seqlens-q 0,5,,20").err, HasSubstr("0,5,,20"));
  EXPECT_THAT(attention("--cu-seqlens-k " + path("cu_k.npy")).err,
              HasSubstr("without --cu-seqlens-q"));
}

TEST_F(AttentionTool, EveryFeatureHasASwitch) {
  const std::vector<std::uint16_t> sink = {0x3f80, 0xbf80};  // bf16: 1, -1
  const ConstTensorView view =
      contiguous_view(static_cast<const void*>(sink.data()), DType::kBF16, {2});
  write_safetensors(path("sink.safetensors"), {{"sink", view}});
  const Outcome run = attention("--input " + path("sink.safetensors") +
                                " --sink sink --window 5,3 --softcap 4 --scale 0.3 --dtype f16 "
                                "--check --kernel k6");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("f16, batch 1, heads 2/1, queries 20, keys 30, head_dim "
                                 "64, window 5 back, window 3 ahead, softcap 4, sink, lse, scale "
                                 "0.3"));
  EXPECT_THAT(run.out, HasSubstr("check      correct"));
  EXPECT_THAT(attention("--scale 0").err, HasSubstr("scale = 0; expected a finite number > 0"));
}

TEST_F(AttentionTool, SpeaksJson) {
  const nlohmann::json report = attention("--check --kernel k5 --json").parsed();
  EXPECT_EQ(report["plan"]["kernel"], "k5");
  EXPECT_TRUE(report["error"]["ok"]);
  EXPECT_EQ(report["error"]["rows"], 40);
  EXPECT_GT(report["counted"]["total"]["tensor_flop"], 4.0 * 64 * 2 * 20 * 30 - 1);
  EXPECT_FALSE(report.contains("time"));
}

TEST_F(AttentionTool, ExplainsThePlanWithoutRunning) {
  // Steps to K6 were measured for head_dim 128 alone: JSON has no infinite cost.
  EXPECT_EQ(attention("--plan --json").status, 0);
  const Outcome plan = attention("--plan --kernel auto");
  EXPECT_THAT(plan.out, Not(HasSubstr("not k1:")));
  EXPECT_THAT(plan.out, HasSubstr(" more: --all\n"));
  const Outcome whole = attention("--plan --all");
  EXPECT_THAT(whole.out, HasSubstr("not k1: it is expected to take"));
  EXPECT_THAT(whole.out, Not(HasSubstr("more: --all")));
  const Outcome refused = attention("--plan --kernel k2 --softcap 3");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("kernel k2 does not support a softcap. Possible here: k5"));
}

TEST_F(AttentionTool, TakesTensorsOfASafetensorsFile) {
  const std::string in = path("in.safetensors"), out = path("out.safetensors");
  const std::vector<std::uint16_t> ones(2 * 5 * 64, 0x3f80);
  const ConstTensorView view =
      contiguous_view(static_cast<const void*>(ones.data()), DType::kBF16, {2, 5, 64});
  write_safetensors(in, {{"x.q", view}, {"x.k", view}, {"x.v", view}});
  const Outcome run = run_tool(std::string(kDevice) + "attention --input " + in +
                               " --q x.q --k x.k --v x.v --layout hnd --check --out " + out);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("heads 2, queries 5"));
  const SafetensorsFile written(out);
  const HostTensor result(written.tensor("out"));
  EXPECT_EQ(result.dtype(), DType::kBF16);
  for (const std::uint16_t code : result.elems<std::uint16_t>()) ASSERT_EQ(code, 0x3f80);
}

TEST_F(AttentionTool, ValuesOfAnotherWidth) {
  const std::string out = path("out.npy");
  write("v", {30, 1, 40}, 3);
  const Outcome run = attention("--causal --check --out " + out);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("head_dim 64, value_dim 40, causal"));
  EXPECT_EQ(read_npy(out).shape(), (std::vector<std::int64_t>{20, 2, 40}));
  // Heads first: out lies as q does.
  write("q", {2, 20, 192}, 1);
  write("k", {1, 30, 192}, 2);
  write("v", {1, 30, 128}, 3);
  const Outcome heads_first = attention("--layout hnd --check --out " + out);
  EXPECT_EQ(heads_first.status, 0) << heads_first.err;
  EXPECT_EQ(read_npy(out).shape(), (std::vector<std::int64_t>{2, 20, 128}));
  const Outcome drawn = run_tool(
      std::string(kDevice) + "attention --inputs normal --shape 1,2,1,20,30,136,72 --check --json");
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_EQ(drawn.parsed()["error"]["rows"], 40);
  EXPECT_THAT(attention("--layout hnd --dtype e4m3 --check").err,
              HasSubstr("does not support a value_dim other than head_dim"));
}

TEST_F(AttentionTool, NamesWhatIsWrong) {
  EXPECT_THAT(attention("--layout bnhd").err, HasSubstr("which --layout bnhd does not describe"));
  EXPECT_THAT(attention("--layout nnd").err, HasSubstr("each once, d last"));
  EXPECT_THAT(attention("--window 3,x").err, HasSubstr("--window 3,x"));
  EXPECT_THAT(attention("--kernel k9").err, HasSubstr("there is no kernel \"k9\""));
  write("v", {30, 2, 64}, 3);
  EXPECT_THAT(attention("").err, HasSubstr("k is [batch 1, rows 30, heads 1], v [1, 30, 2]"));
  write("v", {30, 1, 100}, 3);
  EXPECT_THAT(attention("").err, HasSubstr("value_dim = 100; expected a multiple of 8"));
  write("k", {30, 1, 32}, 2);
  EXPECT_THAT(attention("").err, HasSubstr("head_dim 64, k 1 and 32; expected the same"));
  EXPECT_THAT(run_tool(std::string(kDevice) + "attention --q /nonexistent.npy").err,
              HasSubstr("--k is missing"));
  EXPECT_THAT(
      run_tool(std::string(kDevice) + "attention --q /nonexistent.npy --k /k.npy --v /v.npy").err,
      HasSubstr("nonexistent.npy"));
}

TEST_F(AttentionTool, KernelsThatReadPagesAreNoRungs) {
  const Outcome run = run_tool(std::string(kDevice) + "ladder --kernels k6_pages");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("there is no rung \"k6_pages\"; expected one of auto, k1,"),
                             HasSubstr("k6_long, k7,")));
}

TEST_F(AttentionTool, LadderChecksReportsAndReadsItsLogAgain) {
  const std::string out = path("ladder");
  const std::string small =
      "ladder --kernels k2,k4_2,k6 --head-dims 64 --lengths 64,128 --tokens 128 --hidden 64 ";
  const Outcome run =
      run_tool(kDevice + small + "--out " + out, "TILEWRIGHT_COMMIT=0123456789ab-dirty");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("12 results checked against float64, 0 wrong"));
  EXPECT_THAT(run.out, HasSubstr("simulated: no times"));
  const nlohmann::json log = read_json(out + "/ladder.json");
  EXPECT_EQ(log["schema"], 1);
  EXPECT_EQ(log["samples"].size(), 12u);
  EXPECT_FALSE(log["samples"][0].contains("samples_us"));
  EXPECT_EQ(log["commit"], "0123456789ab");
  EXPECT_EQ(log["dirty"], true);
  EXPECT_GT(log["samples"][0]["counted"]["total"]["warp_instructions"], 0);
  const std::string page(MappedFile(out + "/ladder.html").text());
  EXPECT_THAT(page, HasSubstr("The attention ladder, counted"));
  EXPECT_THAT(page, testing::Not(HasSubstr("http"))) << "needs nothing from elsewhere";

  // A log with times, as a GPU gives it, and a peer.
  nlohmann::json timed = log, peers = log;
  timed["device"]["is_simulated"] = false;
  for (nlohmann::json& sample : timed["samples"]) sample["samples_us"] = {10.0, 12.0, 11.0};
  peers["samples"] = nlohmann::json::array({timed["samples"][0]});
  peers["samples"][0]["kernel"] = "cudnn";
  peers["samples"][0]["source"] = "cuDNN 9";
  peers["samples"][0]["problem"]["q_len"] = 512;  // longer than any of ours
  for (const char* const chosen : {"chosen: k6", "chosen: k6_short"}) {
    nlohmann::json sample = timed["samples"][peers["samples"].size()];
    sample["kernel"] = "auto";
    sample["idea"] = chosen;
    peers["samples"].push_back(sample);
  }
  write_json(folder_ / "timed.json", timed);
  write_json(folder_ / "peers.json", peers);
  const Outcome again = run_tool("ladder --from " + path("timed.json") + " --peers " +
                                 path("peers.json") + " --out " + out + "2");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("cudnn"));
  const std::string measured(MappedFile(out + "2/ladder.html").text());
  EXPECT_THAT(measured, HasSubstr("The attention ladder, measured"));
  EXPECT_THAT(measured, HasSubstr("n 128</h3>")) << "bars are of a length that rungs have";
  EXPECT_THAT(measured, testing::Not(HasSubstr("n 512</h3>")));
  EXPECT_THAT(measured, HasSubstr("what plan() chooses"));
  EXPECT_THAT(measured, testing::Not(HasSubstr("chosen: k6")));

  timed["samples"][3]["error"]["ok"] = false;
  write_json(folder_ / "timed.json", timed);
  const Outcome wrong = run_tool("ladder --from " + path("timed.json") + " --out " + out + "3");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.out, HasSubstr("1 wrong"));
  EXPECT_EQ(run_tool("ladder --from " + out + "/ladder.html").status, 1);
}

TEST_F(AttentionTool, LadderHasPagesOfFp8AndOfDecode) {
  const std::string out = path("upper");
  const std::string small = "--head-dims 64 --lengths 64 --tokens 64 --hidden 64 --mask full ";
  EXPECT_EQ(run_tool(kDevice + ("ladder --kernels k6,k7,k8 " + small) + "--out " + out).status, 0);
  EXPECT_EQ(run_tool(std::string(kDevice) + "bench decode --keys 40 --batch 1 --out " + out).status,
            0);
  const auto page_of = [&](const nlohmann::json& log, const nlohmann::json& decode, int status) {
    write_json(folder_ / "log.json", log);
    write_json(folder_ / "decode.json", decode);
    const Outcome run = run_tool("ladder --from " + path("log.json") + " --decode " +
                                 path("decode.json") + " --out " + out);
    EXPECT_EQ(run.status, status) << run.err;
    return std::string(MappedFile(out + "/ladder.html").text());
  };
  nlohmann::json log = read_json(out + "/ladder.json"), decode = read_json(out + "/decode.json");
  for (std::size_t i = 1; i < 3; ++i) {
    const nlohmann::json& error = log["samples"][i]["error"];
    EXPECT_GT(error["relative_rms"], 0.01) << "against the operands of 16 bits";
    EXPECT_LT(error["worst_lse_of_bound"], 1) << "against those that are rounded";
  }
  const std::string counted = page_of(log, decode, 0);
  EXPECT_THAT(counted, testing::Not(HasSubstr("Products of e4m3"))) << "a plot of no times";
  EXPECT_THAT(counted, HasSubstr("floor, us"));

  log["device"]["is_simulated"] = false;
  for (nlohmann::json* const list : {&log["samples"], &decode["samples"]})
    for (nlohmann::json& sample : *list) sample["samples_us"] = {10.0, 12.0, 11.0};
  const std::string measured = page_of(log, decode, 0);
  EXPECT_THAT(measured, HasSubstr("ceiling 989"));
  EXPECT_THAT(measured, HasSubstr("ceiling 1979")) << "e4m3 has a roof of its own";
  EXPECT_THAT(measured, HasSubstr("best of 16 bits"));
  EXPECT_THAT(measured, HasSubstr("flops a byte"));
  EXPECT_THAT(measured, HasSubstr("rungs of e4m3: "));
  EXPECT_THAT(measured, HasSubstr("GB/s"));

  nlohmann::json older = log;
  for (nlohmann::json& sample : older["samples"]) ASSERT_EQ(sample.erase("bytes"), 1u);
  EXPECT_EQ(page_of(older, decode, 0), measured) << "a problem says how many bytes it moves";

  nlohmann::json peer = log["samples"][0];
  peer["source"] = "cuDNN 9";
  peer["problem"]["q_len"] = 512;
  older["samples"].push_back(peer);
  EXPECT_THAT(page_of(older, decode, 0), HasSubstr("rungs of 16 bits: "))
      << "where a peer has longer sequences than a rung";

  decode["samples"][0]["error"]["ok"] = false;
  page_of(log, decode, 1);

  decode["tool"] = "bench/decode_peers.py";
  page_of(log, decode, 1);
  const Outcome refused = run_tool("bench decode --from " + path("decode.json") + " --out " + out);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("a log of kind = decode by bench/decode_peers.py; expected one "
                        "that `tilewright bench decode` has written"));
}

TEST_F(AttentionTool, LadderTakesRealTensors) {
  const std::string input = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/data/qkv.safetensors";
  const nlohmann::json log = run_tool(std::string(kDevice) +
                                      "ladder --json --kernels k6 --limit 70 "
                                      "--input " +
                                      input + " --out " + path("real"))
                                 .parsed();
  ASSERT_EQ(log["samples"].size(), 2u);
  for (const nlohmann::json& sample : log["samples"]) {
    EXPECT_TRUE(sample["error"]["ok"]);
    EXPECT_EQ(sample["problem"]["q_len"], 70);
    EXPECT_LT(sample["error"]["relative_rms"], 4e-3);
  }
}

}  // namespace
}  // namespace tilewright
