#include "model/kernel_runner/sampler.h"

#include <cstring>
#include <utility>

namespace tilewright::model {

// What rows draw with, in one piece of memory: an array of each kind behind the other.
struct KernelSampler::Inputs {
  explicit Inputs(std::int64_t count) : rows(count) {}

  std::int64_t rows;
  std::int64_t seeds = 0;  // byte offsets
  std::int64_t temperature = 16 * rows, top_p = temperature + 4 * rows, min_p = top_p + 4 * rows,
               top_k = min_p + 4 * rows, positions = top_k + 4 * rows, index = positions + 4 * rows;
  std::int64_t bytes = index + 4 * rows;

  template <class T>
  static void put(std::vector<std::uint8_t>& to, std::int64_t offset, std::int64_t idx, T value) {
    std::memcpy(to.data() + offset + idx * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }
};

KernelSampler::KernelSampler(const Device& device, const Config& config, const Projection& head,
                             const StepRanks& ranks, std::int64_t rows)
    : device_(device),
      hidden_(config.hidden),
      vocab_(config.vocab),
      most_rows_(rows),
      head_(head),
      ranks_(ranks),
      inputs_(device, Inputs(rows).bytes),
      gathered_rows_(device, rows * config.hidden),
      logits_(device, rows * head.width()),
      all_logits_(device, ranks.divides_heads() ? ranks.share.world * rows * head.width() : 0),
      ids_(device, rows),
      all_ids_(device, ranks.divides_experts() ? ranks.share.world * rows : 0) {}

const DrawCount& KernelSampler::own(const DrawShape& shape) const {
  return shape[ranks_.divides_experts() ? static_cast<std::size_t>(ranks_.share.rank) : 0];
}

const ProjectionRun& KernelSampler::head_for(std::int64_t rows) {
  return heads_.try_emplace(rows, head_, rows, DType::kF32).first->second;
}

void KernelSampler::upload(const DrawShape& shape, std::span<const DrawnRow> drawn) {
  const std::int64_t rows = own(shape).rows;
  if (rows == 0) return;
  const Inputs at(rows);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(at.bytes), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    Inputs::put(bytes, at.positions, row, std::int32_t{-1});
    Inputs::put(bytes, at.index, row, std::int32_t{-1});
  }
  const bool in_place = own(shape).is_in_place();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const DrawnRow& one = drawn[i];
    const SamplerOptions& how = one.how.sampler;
    const std::int64_t row = in_place ? one.row : static_cast<std::int64_t>(i);
    Inputs::put(bytes, at.seeds, 2 * row, how.seed);
    Inputs::put(bytes, at.seeds, 2 * row + 1, one.how.sequence);
    Inputs::put(bytes, at.temperature, row, static_cast<float>(how.temperature));
    Inputs::put(bytes, at.top_p, row, static_cast<float>(how.top_p));
    Inputs::put(bytes, at.min_p, row, static_cast<float>(how.min_p));
    Inputs::put(bytes, at.top_k, row,
                static_cast<std::int32_t>(std::min<std::int64_t>(how.top_k, vocab_)));
    Inputs::put(bytes, at.positions, row, static_cast<std::int32_t>(one.position));
    Inputs::put(bytes, at.index, row, static_cast<std::int32_t>(one.row));
  }
  inputs_.buffer().upload(std::as_bytes(std::span(bytes)));
}

std::size_t KernelSampler::workspace_bytes(const DrawShape& shape) {
  const std::int64_t rows = own(shape).rows;
  return rows == 0 ? 0 : head_for(rows).workspace_bytes();
}

void KernelSampler::run(const DrawShape& shape, const std::uint16_t* x, void* workspace,
                        void* stream) {
  const std::int64_t rows = own(shape).rows, width = head_.width();
  if (rows > 0) {
    const Inputs at(rows);
    const auto input = [&](std::int64_t offset) { return inputs_.get() + offset; };
    if (!own(shape).is_in_place()) {
      const std::int64_t tokens = own(shape).tokens;
      const auto [gather, is_new] =
          gathers_.try_emplace({tokens, rows}, device_,
                               GatherRowsProblem{.rows = rows, .x_rows = tokens, .cols = hidden_});
      gather->second.run({.x = x,
                          .index = reinterpret_cast<const std::int32_t*>(input(at.index)),
                          .out = gathered_rows_.get(),
                          .stream = stream});
      x = gathered_rows_.get();
    }
    head_for(rows).run(x, logits_.get(), workspace, stream);
    const float* logits = logits_.get();
    const std::int64_t parts = ranks_.divides_heads() ? ranks_.share.world : 1;
    if (parts > 1) {
      const std::vector<std::int64_t> bytes(static_cast<std::size_t>(parts), 4 * rows * width);
      ranks_.comm->all_gather(logits, all_logits_.get(), bytes, stream);
      logits = all_logits_.get();
    }
    const auto [sample, is_new] = samples_.try_emplace(rows, device_,
                                                       SampleProblem{.rows = rows,
                                                                     .vocab = vocab_,
                                                                     .parts = parts,
                                                                     .row_stride = width,
                                                                     .part_stride = rows * width});
    sample->second.run({.logits = logits,
                        .temperature = reinterpret_cast<const float*>(input(at.temperature)),
                        .top_k = reinterpret_cast<const std::int32_t*>(input(at.top_k)),
                        .top_p = reinterpret_cast<const float*>(input(at.top_p)),
                        .min_p = reinterpret_cast<const float*>(input(at.min_p)),
                        .seeds = reinterpret_cast<const std::uint64_t*>(input(at.seeds)),
                        .positions = reinterpret_cast<const std::int32_t*>(input(at.positions)),
                        .ids = ids_.get(),
                        .stream = stream});
  }
  if (!ranks_.divides_experts()) return;
  std::vector<std::int64_t> bytes;
  for (const DrawCount& count : shape) bytes.push_back(4 * count.rows);
  ranks_.comm->all_gather(ids_.get(), all_ids_.get(), bytes, stream);
}

std::vector<std::int32_t> KernelSampler::ids(
    const DrawShape& shape, std::span<const std::vector<std::int64_t>> drawn_rows) const {
  std::int64_t all = 0;
  for (const DrawCount& count : shape) all += count.rows;
  std::vector<std::int32_t> values(static_cast<std::size_t>(all)), ids;
  const IntArray& from = ranks_.divides_experts() ? all_ids_ : ids_;
  from.buffer().download(std::as_writable_bytes(std::span(values)));
  auto first = values.begin();
  for (std::size_t rank = 0; rank < shape.size(); ++rank) {
    const std::vector<std::int64_t>& rows = drawn_rows[rank];
    for (std::size_t i = 0; i < rows.size(); ++i)
      ids.push_back(first[shape[rank].is_in_place() ? rows[i] : static_cast<std::int64_t>(i)]);
    first += shape[rank].rows;
  }
  return ids;
}

}  // namespace tilewright::model
