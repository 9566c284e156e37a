#include "verify/moe_data.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "formats/minifloat.h"
#include "layout/int_tuple.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

const MoeShape kMoeShapes[] = {{"v3", 256, 8, 7168, 2048, false, 0},
                               {"v4-flash", 256, 6, 4096, 2048, false, 10},
                               {"v4-pro", 384, 6, 7168, 3072, false, 10},
                               {"small", 8, 2, 256, 128, false, 10}};

std::uint64_t mix_moe_bits(std::uint64_t z) {  // splitmix64
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Bytes made of random ones by `change`.
template <class Change>
std::vector<std::uint8_t> draw_moe_bytes(std::uint64_t seed, std::int64_t count, Change&& change) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  ThreadPool pool;
  pool.parallel_for(0, (count + 7) / 8, 1 << 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint64_t bits = mix_moe_bits(mix_moe_bits(seed) ^ static_cast<std::uint64_t>(i));
      for (std::int64_t b = 0; b < 8 && 8 * i + b < count; ++b)
        bytes[static_cast<std::size_t>(8 * i + b)] =
            change(static_cast<std::uint8_t>(bits >> 8 * b));
    }
  });
  return bytes;
}

// bf16 from a byte: 16 mantissas of both signs in 8 binades.
std::uint16_t bf16_of(std::uint8_t byte, int exponent) {
  const int field = exponent + 127 - (byte >> 4 & 7);
  return static_cast<std::uint16_t>((byte >> 7) << 15 | field << 7 | (byte & 15) << 3);
}

}  // namespace

MoeShape find_moe_shape(const std::string& name) {
  for (const MoeShape& shape : kMoeShapes)
    if (shape.name == name) return shape;
  MoeShape own = {.name = name};
  const std::pair<std::int64_t*, const char*> fields[] = {{&own.experts, "experts"},
                                                          {&own.topk, "experts of a token"},
                                                          {&own.hidden, "hidden size"},
                                                          {&own.inter, "intermediate size"}};
  const char* at = name.data();
  const char* const end = at + name.size();
  for (const auto& [value, what] : fields) {
    const auto [next, error] = std::from_chars(at, end, *value);
    const bool is_last = value == &own.inter;
    require(error == std::errc{} && (is_last ? next == end : next != end && *next == '/'),
            ErrorKind::kInvalidArgument,
            "moe: shape {}; expected v3, v4-flash, v4-pro, small or EXPERTS/TOPK/HIDDEN/INTER, "
            "whole numbers",
            name);
    require(*value > 0, ErrorKind::kInvalidArgument, "moe: shape {} has {} {}; expected 1 or more",
            name, what, *value);
    at = is_last ? next : next + 1;
  }
  return own;
}

DrawnWeight::DrawnWeight(std::uint64_t seed, NumberFormat format, std::int64_t n, std::int64_t k)
    : format_(format), n_(n), k_(k) {
  const double unit = 1 / std::sqrt(static_cast<double>(k));
  const auto exponent = static_cast<int>(std::lround(std::log2(unit)));
  const auto plain = [](std::uint8_t b) { return b; };
  switch (format) {
    case NumberFormat::kBf16:
      values_.resize(static_cast<std::size_t>(2 * n * k));
      {
        const auto bytes = draw_moe_bytes(seed, n * k, plain);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          const std::uint16_t code = bf16_of(bytes[i], exponent + 1);
          std::memcpy(&values_[2 * i], &code, 2);
        }
      }
      return;
    case NumberFormat::kFp8:
      // Exponent fields 4 to 7: magnitudes 1/8 to 2.
      values_ = draw_moe_bytes(seed, n * k, [](std::uint8_t b) {
        return static_cast<std::uint8_t>((b & 0x80) | (0x20 + (b & 0x1f)));
      });
      for (std::int64_t i = 0; i < ceil_div(n, 128) * ceil_div(k, 128); ++i)
        block_scales_.push_back(static_cast<float>(unit * (1 + static_cast<double>(i % 5) / 8)));
      return;
    case NumberFormat::kMxfp4:
      values_ = draw_moe_bytes(seed, n * k / 2, plain);
      scales_ = draw_moe_bytes(seed + 1, n * k / 32, [&](std::uint8_t b) {
        return static_cast<std::uint8_t>(127 + exponent - 1 - b % 4);
      });
      return;
    case NumberFormat::kNvfp4:
      values_ = draw_moe_bytes(seed, n * k / 2, plain);
      // 8 to 60
      scales_ = draw_moe_bytes(seed + 1, n * k / 16, [](std::uint8_t b) {
        return static_cast<std::uint8_t>(0x50 + b % 24);
      });
      global_ = static_cast<float>(unit / 64 * (1 + static_cast<double>(seed % 7) / 16));
  }
}

LinearWeightSource DrawnWeight::source() const {
  const auto view = [](const auto& data, DType dtype, std::int64_t rows, std::int64_t cols) {
    return contiguous_view(static_cast<const void*>(data.data()), dtype, {rows, cols});
  };
  LinearWeightSource s = {.format = format_};
  switch (format_) {
    case NumberFormat::kBf16:
      s.values = view(values_, DType::kBF16, n_, k_);
      break;
    case NumberFormat::kFp8:
      s.values = view(values_, DType::kF8_E4M3, n_, k_);
      s.scales = view(block_scales_, DType::kF32, ceil_div(n_, 128), ceil_div(k_, 128));
      break;
    case NumberFormat::kMxfp4:
      s.values = view(values_, DType::kU8, n_, k_ / 2);
      s.scales = view(scales_, DType::kF8_E8M0, n_, k_ / 32);
      break;
    case NumberFormat::kNvfp4:
      s.values = view(values_, DType::kU8, n_, k_ / 2);
      s.scales = view(scales_, DType::kF8_E4M3, n_, k_ / 16);
      s.global_scale = global_;
  }
  return s;
}

std::vector<float> DrawnWeight::numbers() const {
  const bool is_nvfp4 = format_ == NumberFormat::kNvfp4;
  std::array<float, 16> of_code;
  std::array<float, 256> of_scale, of_fp8;
  for (std::uint32_t c = 0; c < 16; ++c) of_code[c] = static_cast<float>(decode(kE2m1, c));
  for (std::uint32_t c = 0; c < 256; ++c) {
    of_scale[c] = is_nvfp4 ? global_ * static_cast<float>(decode(kE4m3, c))
                           : static_cast<float>(decode(kUe8m0, c));
    of_fp8[c] = static_cast<float>(decode(kE4m3, c));
  }
  std::vector<float> out(static_cast<std::size_t>(n_ * k_));
  const std::int64_t group = is_nvfp4 ? 16 : 32;
  ThreadPool pool;
  pool.parallel_for(0, n_, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first * k_; i < last * k_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      float& x = out[at];
      if (format_ == NumberFormat::kBf16) {
        std::uint16_t code;
        std::memcpy(&code, &values_[2 * at], 2);
        x = std::bit_cast<float>(std::uint32_t{code} << 16);
      } else if (format_ == NumberFormat::kFp8) {
        const std::int64_t block = i / k_ / 128 * ceil_div(k_, 128) + i % k_ / 128;
        x = of_fp8[values_[at]] * block_scales_[static_cast<std::size_t>(block)];
      } else {
        x = of_code[values_[at / 2] >> 4 * (at % 2) & 15u] *
            of_scale[scales_[static_cast<std::size_t>(i / group)]];
      }
    }
  });
  return out;
}

MoeExperts::MoeExperts(const MoeShape& shape, NumberFormat format, std::int64_t distinct)
    : shape_(shape),
      distinct_(static_cast<std::size_t>(std::clamp<std::int64_t>(distinct, 1, shape.experts))) {
  const std::size_t count = distinct_ + (shape.has_shared ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    gate_.emplace_back(10 * i + 1, format, shape.inter, shape.hidden);
    up_.emplace_back(10 * i + 3, format, shape.inter, shape.hidden);
    down_.emplace_back(10 * i + 5, format, shape.hidden, shape.inter);
  }
}

MoeWeightsSource MoeExperts::source() const {
  MoeWeightsSource s;
  for (std::int64_t e = 0; e < shape_.experts; ++e) {
    const std::size_t index = static_cast<std::size_t>(e) % distinct_;
    s.gate.push_back(gate_[index].source());
    s.up.push_back(up_[index].source());
    s.down.push_back(down_[index].source());
  }
  if (!shape_.has_shared) return s;
  s.shared_gate = {gate_.back().source()};
  s.shared_up = {up_.back().source()};
  s.shared_down = {down_.back().source()};
  return s;
}

const MoeExperts::Numbers& MoeExperts::numbers(std::size_t index) {
  auto& known = numbers_[index];
  if (known.gate.empty())
    known = {gate_[index].numbers(), up_[index].numbers(), down_[index].numbers()};
  return known;
}

namespace {

double dot_row(const float* w, const double* x, std::int64_t k) {
  double sum = 0;
  for (std::int64_t c = 0; c < k; ++c) sum += static_cast<double>(w[c]) * x[c];
  return sum;
}

}  // namespace

void MoeExperts::add_expert(std::size_t index, const float* x, double weight, double limit,
                            std::vector<double>& out) {
  const Numbers& w = numbers(index);
  const std::vector<double> wide(x, x + shape_.hidden);
  std::vector<double> h(static_cast<std::size_t>(shape_.inter));
  ThreadPool pool;
  pool.parallel_for(0, shape_.inter, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      double g =
          dot_row(&w.gate[static_cast<std::size_t>(i * shape_.hidden)], wide.data(), shape_.hidden);
      double u =
          dot_row(&w.up[static_cast<std::size_t>(i * shape_.hidden)], wide.data(), shape_.hidden);
      g = std::min(g, limit);
      u = std::clamp(u, -limit, limit);
      h[static_cast<std::size_t>(i)] = weight * g / (1 + std::exp(-g)) * u;
    }
  });
  pool.parallel_for(0, shape_.hidden, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      out[static_cast<std::size_t>(i)] +=
          dot_row(&w.down[static_cast<std::size_t>(i * shape_.inter)], h.data(), shape_.inter);
  });
}

std::vector<double> MoeExperts::exact_row(const float* x, const std::int32_t* ids,
                                          const float* weights, double limit) {
  std::vector<double> out(static_cast<std::size_t>(shape_.hidden), 0.0);
  for (std::int64_t i = 0; i < shape_.topk; ++i) {
    if (ids[i] >= 0)
      add_expert(static_cast<std::size_t>(ids[i]) % distinct_, x, weights[i], limit, out);
  }
  if (shape_.has_shared) add_expert(distinct_, x, 1, limit, out);
  return out;
}

MoeRoutingData draw_routing(const MoeShape& shape, std::int64_t tokens, std::uint64_t seed) {
  MoeRoutingData data;
  std::uint64_t state = mix_moe_bits(seed ^ 0x5eed);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::size_t first = data.ids.size();
    float sum = 0;
    while (data.ids.size() < first + static_cast<std::size_t>(shape.topk)) {
      state = mix_moe_bits(state);
      const auto id =
          static_cast<std::int32_t>((state >> 20) % static_cast<std::uint64_t>(shape.experts));
      const auto begin = data.ids.begin() + static_cast<std::ptrdiff_t>(first);
      if (std::find(begin, data.ids.end(), id) != data.ids.end()) continue;
      data.ids.push_back(id);
      data.weights.push_back(0.1f + static_cast<float>(state & 0xffff) * 0x1p-16f);
      sum += data.weights.back();
    }
    for (std::size_t i = first; i < data.weights.size(); ++i) data.weights[i] /= sum;
  }
  return data;
}

void MoeDifference::add(double found, double exact) noexcept {
  error += (found - exact) * (found - exact);
  norm += exact * exact;
  dot += found * exact;
  other += found * found;
  max_abs = std::max(max_abs, std::isfinite(found) ? std::abs(found - exact) : 1e300);
}

double MoeDifference::relative_rms() const noexcept {
  return norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

double MoeDifference::cosine() const noexcept {
  return norm > 0 && other > 0 ? dot / std::sqrt(norm * other) : 1;
}

nlohmann::json MoeDifference::log(double most_rms, const char* reference) const {
  const double rms = relative_rms(), cos = cosine();
  return {{"reference", reference},
          {"relative_rms", std::isfinite(rms) ? rms : 1e300},
          {"cosine", std::isfinite(cos) ? cos : 0.0},
          {"max_abs", max_abs},
          {"most_rms", most_rms},
          {"ok", rms <= most_rms}};  // false for NaN
}

}  // namespace tilewright::cli
