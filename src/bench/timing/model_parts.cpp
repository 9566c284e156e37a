#include "bench/timing/model_parts.h"

#include "tilewright/buffer.h"
#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/hyper_connection.h"

#include "base/error.h"
#include "verify/attention/data.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr std::int64_t kFirstPosition = 4095, kPageSlots = 64, kCacheRow = 512;

Buffer part_floats(const Device& device, std::int64_t count) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i % 127) / 64 - 1;
  return Buffer::from(device, all);
}

Buffer part_halves(const Device& device, std::int64_t count) {
  return Buffer::from(device, draw_normal(count, 1, DType::kBF16));
}

/// first, first + step, ...
Buffer part_numbers(const Device& device, std::int64_t count, std::int64_t first,
                    std::int64_t step) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::int32_t>(first + static_cast<std::int64_t>(i) * step);
  }
  return Buffer::from(device, all);
}

NumberFormat part_format(const json& problem) {
  const auto format = number_format_from_string(problem["format"].get<std::string>());
  require(format.has_value(), ErrorKind::kInvalidArgument,
          "bench timing: format = {}, which is none", problem["format"].get<std::string>());
  return *format;
}

KvCacheLayout cache_layout(const json& problem, std::int64_t rows) {
  return {.format = part_format(problem),
          .page_size = kPageSlots,
          .num_pages = (rows + kPageSlots - 1) / kPageSlots + 1};
}

Buffer rotary_angles(const Device& device, std::int64_t positions) {
  return Buffer::from(device, rope_table(kRopeCompressedLayers, positions));
}

CompressorKind compressor_kind(const json& problem) {
  const std::string name = problem["kind"];
  if (name == "index") {
    return part_format(problem) == NumberFormat::kMxfp4 ? CompressorKind::kIndexMxfp4
                                                        : CompressorKind::kIndexFp8;
  }
  return name == "csa" ? CompressorKind::kCsa : CompressorKind::kHca;
}

/// `batch` sequences with `q_len` new tokens each.
class CompressorCall {
 public:
  CompressorCall(const Device& device, void* stream, const json& p)
      : batch_(p["batch"]),
        q_len_(p["q_len"]),
        kind_(compressor_kind(p)),
        positions_(kFirstPosition + q_len_),
        blocks_((positions_ / compressor_ratio(kind_) + kPageSlots) / kPageSlots),
        compressor_(device, problem(p)),
        kv_(part_floats(device, batch_ * q_len_ * compressor_width(kind_))),
        gate_(part_floats(device, batch_ * q_len_ * compressor_width(kind_))),
        ape_(part_floats(device, compressor_ratio(kind_) * compressor_width(kind_))),
        norm_(part_halves(device, compressor_dim(kind_))),
        rope_(rotary_angles(device, positions_)),
        state_(device, compressor_.state_bytes()),
        starts_(part_numbers(device, batch_, kFirstPosition, 0)),
        table_(part_numbers(device, batch_ * blocks_, 0, 1)),
        pages_(device, compressor_.cache_bytes()),
        stream_(stream) {
    state_.fill(std::byte{0});
  }

  void enqueue() const {
    compressor_.run(
        {.sequences = {.batch = batch_, .q_len = q_len_, .starts = starts_.as<std::int32_t>()},
         .max_tokens = q_len_,
         .kv = kv_.as<float>(),
         .gate = gate_.as<float>(),
         .ape = ape_.as<float>(),
         .norm_weight = norm_.data(),
         .rope = {.angles = rope_.as<float>(), .positions = positions_},
         .state = state_.data(),
         .table = {.pages = table_.as<std::int32_t>(), .blocks = blocks_},
         .pages = pages_.data(),
         .stream = stream_});
  }

 private:
  CompressorProblem problem(const json& p) const {
    KvCacheLayout layout = cache_layout(p, batch_ * blocks_ * kPageSlots);
    if (p["kind"] == "index") layout.format = NumberFormat::kFp8;  // does not count there
    return {.kind = kind_, .cache = layout, .state_slots = batch_};
  }

  std::int64_t batch_, q_len_;
  CompressorKind kind_;
  std::int64_t positions_, blocks_;
  Compressor compressor_;
  Buffer kv_, gate_, ape_, norm_, rope_, state_, starts_, table_, pages_;
  void* stream_;
};

/// Queries are rotated, rows of keys normed, rotated and stored.
class CacheWriteCall {
 public:
  CacheWriteCall(const Device& device, void* stream, const json& p)
      : tokens_(p["tokens"]),
        heads_(p["heads"]),
        cache_(device, cache_layout(p, tokens_)),
        q_(part_halves(device, tokens_ * heads_ * kCacheRow)),
        kv_(part_halves(device, tokens_ * kCacheRow)),
        weight_(part_halves(device, kCacheRow)),
        rope_(rotary_angles(device, kFirstPosition + tokens_)),
        positions_(part_numbers(device, tokens_, kFirstPosition, 1)),
        slots_(part_numbers(device, tokens_, 0, 1)),
        pages_(device, kv_cache_bytes(cache_.layout())),
        stream_(stream) {}

  void enqueue() const {
    cache_.write({.tokens = tokens_,
                  .heads = heads_,
                  .q = q_.data(),
                  .kv = kv_.data(),
                  .kv_weight = weight_.data(),
                  .positions = positions_.as<std::int32_t>(),
                  .rope = {.angles = rope_.as<float>(), .positions = kFirstPosition + tokens_},
                  .slots = slots_.as<std::int32_t>(),
                  .pages = pages_.data(),
                  .stream = stream_});
  }

 private:
  std::int64_t tokens_, heads_;
  KvCache cache_;
  Buffer q_, kv_, weight_, rope_, positions_, slots_, pages_;
  void* stream_;
};

/// A merge of a result and the next mix.
class HyperConnectionCall {
 public:
  HyperConnectionCall(const Device& device, void* stream, const json& p)
      : problem_{.tokens = p["tokens"], .hidden = p["hidden"], .has_merge = true},
        connection_(device, problem_),
        streams_(part_halves(device, 4 * problem_.tokens * problem_.hidden)),
        before_(part_floats(device, problem_.tokens * kMixes)),
        result_(part_halves(device, problem_.tokens * problem_.hidden)),
        weight_(part_floats(device, kMixes * 4 * problem_.hidden)),
        bias_(part_floats(device, kMixes)),
        scale_(part_floats(device, kMixes)),
        norm_(part_halves(device, problem_.hidden)),
        mix_(part_floats(device, problem_.tokens * kMixes)),
        out_(part_halves(device, problem_.tokens * problem_.hidden)),
        workspace_(device, connection_.workspace_bytes()),
        stream_(stream) {}

  void enqueue() const {
    connection_.run({.streams = streams_.data(),
                     .merged = streams_.data(),
                     .mix_before = before_.as<float>(),
                     .result = result_.data(),
                     .mix_weight = weight_.as<float>(),
                     .mix_bias = bias_.as<float>(),
                     .mix_scale = scale_.as<float>(),
                     .norm_weight = norm_.data(),
                     .mix = mix_.as<float>(),
                     .out = out_.data(),
                     .workspace = workspace_.data(),
                     .stream = stream_});
  }

 private:
  static constexpr std::int64_t kMixes = 24;

  HyperConnectionProblem problem_;
  HyperConnection connection_;
  Buffer streams_, before_, result_, weight_, bias_, scale_, norm_, mix_, out_, workspace_;
  void* stream_;
};

template <class Call>
std::function<void()> part_call(const Device& device, const Stream& stream,
                                const TimingPoint& point) {
  auto call = std::make_shared<Call>(device, stream.handle(), point.problem);
  return [call] { call->enqueue(); };
}

}  // namespace

std::function<void()> model_part_call(const Device& device, const Stream& stream,
                                      const TimingPoint& point) {
  if (point.timed == TimedOperator::kCompressor)
    return part_call<CompressorCall>(device, stream, point);
  if (point.timed == TimedOperator::kCacheWrite)
    return part_call<CacheWriteCall>(device, stream, point);
  return part_call<HyperConnectionCall>(device, stream, point);
}

}  // namespace tilewright::cli
