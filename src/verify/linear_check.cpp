#include "verify/linear_check.h"

#include "base/thread_pool.h"
#include "reference/error_bound.h"
#include "reference/linear/weight.h"
#include "reference/round.h"
#include "verify/stored_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr std::int64_t kTileColumns = 64;

// Sums over rows and columns, one set for each thread's part.
struct Sums {
  double error = 0, norm = 0, dot = 0, out = 0, max_abs = 0, worst = 0, worst_tile = 0;
};

struct GroupedShape {
  std::int64_t rows, n, k, groups;
};

// Compares columns of `out` with x w[j]; weight(j) gives a row of the weight.
class Comparison {
 public:
  Comparison(std::string name, const reference::DotArithmetic& arithmetic, bool has_bound)
      : name_(std::move(name)), arithmetic_(arithmetic), has_bound_(has_bound) {}

  LinearErrors run(const GroupedShape& shape, std::span<const double> x,
                   std::span<const double> out,
                   const std::function<std::vector<double>(std::int64_t)>& weight) const {
    const std::int64_t rows = shape.rows, n = shape.n, k = shape.k, groups = shape.groups;
    Sums total;
    std::mutex mutex;
    ThreadPool pool;
    pool.parallel_for(0, n, kTileColumns, [&](std::int64_t first, std::int64_t last) {
      Sums tile;
      for (std::int64_t j = first; j < last; ++j) {
        const std::vector<double> w = weight(j);
        const std::int64_t group = j * groups / n;
        for (std::int64_t i = 0; i < rows; ++i)
          add(tile,
              x.subspan(static_cast<std::size_t>((i * groups + group) * k),
                        static_cast<std::size_t>(k)),
              w, out[static_cast<std::size_t>(i * n + j)]);
      }
      const std::scoped_lock lock(mutex);
      total.error += tile.error;
      total.norm += tile.norm;
      total.dot += tile.dot;
      total.out += tile.out;
      total.max_abs = std::max(total.max_abs, tile.max_abs);
      total.worst = std::max(total.worst, tile.worst);
      total.worst_tile = std::max(total.worst_tile, relative(tile));
    });
    LinearErrors errors = {name_, total.max_abs, relative(total), total.worst_tile, 1, total.worst};
    if (total.norm > 0 && total.out > 0)
      errors.cosine = total.dot / std::sqrt(total.norm * total.out);
    return errors;
  }

 private:
  static double relative(const Sums& s) {
    return s.norm > 0 ? std::sqrt(s.error / s.norm) : std::sqrt(s.error);
  }

  void add(Sums& sums, std::span<const double> x, std::span<const double> w, double out) const {
    double exact = 0, magnitude = 0;
    for (std::size_t c = 0; c < w.size(); ++c) {
      exact += x[c] * w[c];
      magnitude += std::abs(x[c] * w[c]);
    }
    const double error = std::abs(out - exact);
    sums.error += error * error;
    sums.norm += exact * exact;
    sums.dot += out * exact;
    sums.out += out * out;
    // A NaN is no small error.
    sums.max_abs = std::max(sums.max_abs, std::isnan(error) ? INFINITY : error);
    if (!has_bound_) return;
    const double bound = reference::dot_error_bound(arithmetic_, exact, magnitude);
    const double share = std::isnan(error) ? INFINITY : error > 0 ? error / bound : 0;
    sums.worst = std::max(sums.worst, share);
  }

  std::string name_;
  reference::DotArithmetic arithmetic_;
  bool has_bound_;
};

}  // namespace

bool LinearReport::is_ok() const noexcept {
  return rows == 0 || (same.relative_rms <= 0.003 && same.worst_tile_rms <= 0.006 &&
                       same.cosine >= 0.99999 && same.worst_of_bound <= 1);
}

LinearReport check_linear(const LinearWeightData& weight, const LinearPlan& plan,
                          std::span<const float> x, std::span<const double> out,
                          std::int64_t max_rows) {
  const StoredRows stored(weight.source);
  const std::int64_t rows = std::min(plan.problem.m, max_rows), k = stored.k();
  const std::int64_t parts = rows * plan.weight.groups;  // of k columns of x
  const GroupedShape shape = {rows, stored.n(), k, plan.weight.groups};
  const bool is_fp8 = plan.kernel.find("e4m3") != std::string::npos;
  const bool is_block_scaled = plan.weight.activations == LinearActivations::kBlockScaled;
  const std::span<const float> some = x.first(static_cast<std::size_t>(parts * k));
  const std::vector<double> exact_x(some.begin(), some.end());
  const bool is_bf16 = plan.problem.out_dtype == DType::kBF16;
  const reference::DotArithmetic arithmetic = {
      .length = k + 1,
      // The FP8 tensor core truncates its sums at 13 bits behind the largest product's first.
      .accumulate_roundoff = is_fp8 ? 0x1p-20 : 2 * reference::kRoundoffFp32,
      .output_roundoff = is_bf16 ? reference::kRoundoffBf16 : reference::kRoundoffFp32};
  LinearReport report;
  report.rows = rows;
  const auto dequantised = [&](std::int64_t j) { return reference::dequantize(stored.row(j)); };
  if (is_fp8) {
    const bool has_blocks = plan.problem.activation_scales == ScaleSharing::kBlock;
    const std::vector<double> rounded =
        reference::round_to_fp8(some, parts, k, has_blocks ? kStoredBlock : 0);
    report.same =
        Comparison("e4m3 operands", arithmetic, true).run(shape, rounded, out, [&](std::int64_t j) {
          return reference::dequantize_as_e4m3(stored.row(j));
        });
    report.dequantised =
        Comparison("dequantised weight", arithmetic, false).run(shape, exact_x, out, dequantised);
  } else if (is_block_scaled) {
    const bool is_nvfp4 = plan.weight.format == NumberFormat::kNvfp4;
    std::vector<double> rounded = exact_x;
    reference::round_rows_to_blocks(is_nvfp4 ? kNvfp4 : kMxfp8Ceil, rounded, k, std::nullopt);
    report.same = Comparison(is_nvfp4 ? "NVFP4 x" : "MXFP8 x", arithmetic, true)
                      .run(shape, rounded, out, dequantised);
    report.dequantised =
        Comparison("dequantised weight", arithmetic, false).run(shape, exact_x, out, dequantised);
  } else {
    report.same =
        Comparison("dequantised weight", arithmetic, true).run(shape, exact_x, out, dequantised);
    report.dequantised = report.same;
  }
  if (weight.original.empty()) return report;
  report.original = Comparison("original weight", arithmetic, false)
                        .run(shape, exact_x, out, [&](std::int64_t j) {
                          const auto begin = weight.original.begin() + j * k;
                          return std::vector<double>(begin, begin + k);
                        });
  return report;
}

nlohmann::json to_json(const LinearErrors& e) {
  const auto finite = [](double x) { return std::isfinite(x) ? x : 1e300; };
  return {{"reference", e.reference},
          {"max_abs", finite(e.max_abs)},
          {"relative_rms", finite(e.relative_rms)},
          {"worst_tile_rms", finite(e.worst_tile_rms)},
          {"cosine", std::isfinite(e.cosine) ? e.cosine : 0.0},
          {"worst_of_bound", finite(e.worst_of_bound)}};
}

nlohmann::json to_json(const LinearReport& r) {
  nlohmann::json out = to_json(r.same);
  out["rows"] = r.rows;
  out["ok"] = r.is_ok();
  out["dequantised"] = to_json(r.dequantised);
  if (!r.original.reference.empty()) out["original"] = to_json(r.original);
  return out;
}

}  // namespace tilewright::cli
