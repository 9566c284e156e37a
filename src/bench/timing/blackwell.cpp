#include "bench/timing/blackwell.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/timing/operators.h"
#include "bench/timing/timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct BlackwellPoint {
  TimingPoint timing;
  double flop = 0, bytes = 0;  ///< of the problem; bytes 0: not what binds
};

class PointList {
 public:
  std::vector<BlackwellPoint> take() {
    // As FlashAttention measures: 32768 tokens, 2048 of hidden size.
    for (const std::int64_t length : {1024, 2048, 4096, 8192}) {
      attention("sm100_e", length, 128, false);
    }
    attention("sm100_c", 4096, 128, false);
    attention("sm100_e", 4096, 128, true);
    attention("sm100_e", 4096, 64, false);
    attention("sm100_f", 4096, 256, false);
    for (const char* kernel :
         {"tensor_bf16_1cta_n128", "tensor_bf16_2cta_n256", "tensor_bf16_4cta_n256"}) {
      linear(kernel, 4096, 4096, 4096);
    }
    linear("tensor_bf16_2cta_n256", 8192, 8192, 16384);
    linear("tensor_bf16_few", 16, 4096, 4096);
    for (const char* kernel : {"t16", "t64"}) decode(kernel, 8, 4096);
    decode("t16", 64, 4096);
    sparse(64);
    sparse(128);
    mla("v32", "fp8", 128);
    mla("prefill-v32", "bf16", 256);
    latent(128, 32, 4096);
    latent(16, 32, 4096);
    indexer(64, 4096);
    indexer(256, 4096);
    return std::move(points_);
  }

 private:
  BlackwellPoint& add(TimedOperator timed, std::string kernel, std::string shape, json problem) {
    BlackwellPoint& point = points_.emplace_back();
    point.timing.timed = timed;
    point.timing.kernel = std::move(kernel);
    point.timing.shape = std::move(shape);
    point.timing.problem = std::move(problem);
    return point;
  }

  void attention(const char* kernel, std::int64_t length, std::int64_t head_dim, bool causal) {
    constexpr std::int64_t kTokens = 32768, kHidden = 2048;
    const std::int64_t batch = kTokens / length, heads = kHidden / head_dim;
    BlackwellPoint& point =
        add(TimedOperator::kAttention, kernel,
            fmt::format("attention {} d{} n{}", causal ? "causal" : "full", head_dim, length),
            {{"dtype", "bf16"},
             {"batch", batch},
             {"heads", heads},
             {"kv_heads", heads},
             {"q_len", length},
             {"kv_len", length},
             {"head_dim", head_dim},
             {"causal", causal},
             {"q_strides", {heads * length * head_dim, head_dim, length * head_dim}}});
    const auto visible = static_cast<double>(causal ? (length + 1) / 2 : length);
    point.flop = 4.0 * kTokens * kHidden * visible;
  }

  void linear(const std::string& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
    BlackwellPoint& point =
        add(TimedOperator::kLinear, "bf16:" + kernel, fmt::format("linear m{} n{} k{}", m, n, k),
            {{"m", m}, {"n", n}, {"k", k}});
    point.flop = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
    if (m <= 64) point.bytes = 2.0 * static_cast<double>(n * k);
  }

  void decode(const char* kernel, std::int64_t batch, std::int64_t keys) {
    constexpr std::int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 128;
    BlackwellPoint& point =
        add(TimedOperator::kDecode, kernel, fmt::format("decode h32/8 d128 b{} n{}", batch, keys),
            {{"batch", batch},
             {"q_len", 1},
             {"heads", kHeads},
             {"kv_heads", kKvHeads},
             {"head_dim", kHeadDim},
             {"keys", keys},
             {"page", 0},
             {"kv", "BF16"}});
    point.flop = 4.0 * static_cast<double>(batch * keys * kHeads * kHeadDim);
    point.bytes = 4.0 * static_cast<double>(batch * keys * kKvHeads * kHeadDim);
  }

  void sparse(std::int64_t batch) {
    BlackwellPoint& point = add(TimedOperator::kSparse, "pair", fmt::format("flash fp8 b{}", batch),
                                {{"batch", batch}});
    point.timing.format = "fp8";  // find_sparse_shape() takes the first word of the name
    // 64 heads, two queries a sequence, 640 rows of 512 in two products.
    point.flop = 4.0 * static_cast<double>(batch) * 2 * 64 * 640 * 512;
  }

  // 128 heads, lists of 2048 rows of 576, one query each.
  void mla(const char* shape, const char* format, std::int64_t batch) {
    constexpr double kRows = 2048;
    BlackwellPoint& point = add(TimedOperator::kSparse, "pair",
                                fmt::format("{} {} b{}", shape, format, batch), {{"batch", batch}});
    point.timing.format = format;
    point.flop = 2.0 * static_cast<double>(batch) * 128 * kRows * (576 + 512);
  }

  void latent(std::int64_t heads, std::int64_t batch, std::int64_t keys) {
    BlackwellPoint& point =
        add(TimedOperator::kLatent, "pair", fmt::format("mla h{} b{} n{}", heads, batch, keys),
            {{"batch", batch}, {"q_len", 1}, {"heads", heads}, {"keys", keys}});
    const auto all = static_cast<double>(batch * keys);
    point.flop = 2.0 * all * static_cast<double>(heads) * (576 + 512);
    point.bytes = all * 576 * 2;
  }

  void indexer(std::int64_t batch, std::int64_t keys) {
    BlackwellPoint& point =
        add(TimedOperator::kIndexer, "indexer", fmt::format("indexer fp8 h64 b{} n{}", batch, keys),
            {{"batch", batch},
             {"q_len", 1},
             {"heads", 64},
             {"keys", keys},
             {"topk", 512},
             {"key_page", 64},
             {"lengths", "full"}});
    point.timing.format = "fp8";
    point.flop = 2.0 * static_cast<double>(batch * keys) * 64 * 128;
  }

  std::vector<BlackwellPoint> points_;
};

/// The largest of the parts, with its share of `whole`.
std::string largest(const json& parts, double whole) {
  std::string name;
  double most = 0;
  for (const auto& [key, value] : parts.items()) {
    if (value.get<double>() > most) name = key, most = value;
  }
  return name.empty() ? "-" : fmt::format("{} {:.0f} %", name, 100 * most / whole);
}

}  // namespace

json predict_blackwell(int sample, const std::vector<std::string>& kernels) {
  request_predictions(sample);
  const Device device = Device::open("sim:b200");
  std::vector<BlackwellPoint> points = PointList().take();
  if (!kernels.empty())
    std::erase_if(points, [&](const BlackwellPoint& point) {
      return std::ranges::find(kernels, point.timing.kernel) == kernels.end();
    });
  Progress progress(stderr, "bench timing", static_cast<std::int64_t>(points.size()), "points");
  json out = json::array();
  for (const BlackwellPoint& point : points) {
    progress.add();
    json row = {{"shape", point.timing.shape}, {"kernel", point.timing.kernel}};
    try {
      const json predicted = predict_point(device, point.timing);
      if (predicted.contains("problem")) {
        row["problem"] = predicted["problem"];
      } else {
        const double us = predicted["us"];
        row["predicted_us"] = us;
        row["tflops"] = point.flop / us * 1e-6;
        if (point.bytes != 0) row["tb_per_s"] = point.bytes / us * 1e-6;
        row["busiest"] = largest(predicted["busy_us"], us);
        row["longest_wait"] = largest(predicted["wait_us"], us);
        row["costs_from"] = predicted["costs_from"];
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      row["problem"] = error.what();
    }
    out.push_back(std::move(row));
  }
  progress.finish();
  return {{"device", "b200"}, {"points", out}};
}

std::string blackwell_table(const json& result, const Style& style) {
  Table table({"shape", "kernel", "predicted us", "TFLOP/s", "TB/s", "busiest", "warps wait for"});
  std::string problems;
  for (const json& point : result["points"]) {
    if (point.contains("problem")) {
      problems +=
          fmt::format("{} {}: {}\n", point["shape"].get<std::string>(),
                      point["kernel"].get<std::string>(), point["problem"].get<std::string>());
      continue;
    }
    table.add(
        {point["shape"], point["kernel"],
         fmt::format("{:.1f}", point["predicted_us"].get<double>()),
         fmt::format("{:.0f}", point["tflops"].get<double>()),
         point.contains("tb_per_s") ? fmt::format("{:.2f}", point["tb_per_s"].get<double>()) : "",
         point["busiest"], point["longest_wait"]});
  }
  return table.text(style) + problems +
         "\npredicted by a model that no measurement of a B200 by us stands behind\n";
}

}  // namespace tilewright::cli
