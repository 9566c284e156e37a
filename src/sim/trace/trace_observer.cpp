#include "sim/trace/trace_observer.h"

#include "sim/async/mbarrier.h"
#include "sim/state/code.h"
#include "sim/state/lane_names.h"
#include "sim/trace/register_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostChars = 204;  // of an instruction

bool is_any(const std::vector<TraceFilter>& filters, std::uint32_t line, const Warp& warp) {
  return std::ranges::any_of(filters, [&](const TraceFilter& filter) {
    return filter.matches(line, warp.index, warp.cta->index);
  });
}

}  // namespace

TraceObserver::TraceObserver(TraceOptions options, std::function<void(std::string_view)> print)
    : options_(std::move(options)), print_(std::move(print)) {}

void TraceObserver::launch_started(Grid&) {
  barriers_.clear();
}

void TraceObserver::launch_ended(Grid& grid) {
  if (num_stops_ == 0 && !options_.breakpoints.empty()) say_not_reached(*grid.code);
  if (num_stops_ > options_.max_stops) {
    print_(fmt::format("{} more stops at breakpoints are not shown\n",
                       num_stops_ - options_.max_stops));
  }
  if (num_lines_ > options_.max_lines) {
    print_(fmt::format("{} more traced instructions are not shown\n",
                       num_lines_ - options_.max_lines));
  }
}

/// A line may also be beside the instructions: one of another kernel, or a label.
void TraceObserver::say_not_reached(const KernelCode& code) {
  std::uint32_t first = 0, last = 0;
  for (const CodePlace& place : code.places) {
    if (place.syntax == nullptr) continue;
    const std::uint32_t line = place.syntax->pos.line;
    first = first == 0 ? line : std::min(first, line);
    last = std::max(last, line);
  }
  print_(
      fmt::format("no warp came to a breakpoint; the instructions of {} are on lines {} to {} of "
                  "{}\n",
                  code.info.name, first, last, code.module->name));
}

void TraceObserver::executing(Warp& warp, const Insn& insn, std::uint32_t active) {
  const Instruction* instruction = warp.grid->code->place(insn).syntax;
  if (instruction == nullptr || warp.is_resumed ||
      !is_any(options_.breakpoints, instruction->pos.line, warp)) {
    return;
  }
  if (++num_stops_ <= options_.max_stops) show(warp, insn, active, false);
}

void TraceObserver::executed(Warp& warp, const Insn& insn, std::uint32_t active) {
  const Instruction* instruction = warp.grid->code->place(insn).syntax;
  if (instruction == nullptr) return;
  const std::uint32_t line = instruction->pos.line;
  if (num_stops_ <= options_.max_stops && is_any(options_.breakpoints, line, warp)) {
    show(warp, insn, active, true);
  }
  if (is_any(options_.traces, line, warp) && ++num_lines_ <= options_.max_lines) {
    trace(warp, insn, active);
  }
}

void TraceObserver::mbarrier(Warp& warp, const Insn&, const MbarrierEvent& event) {
  const std::uint32_t rank = event.address >> kSharedRankShift;
  const auto& ctas = warp.cta->cluster->ctas;
  if (rank >= ctas.size()) return;
  std::set<std::uint32_t>& known = barriers_[ctas[rank]->linear_index];
  const std::uint32_t offset = event.address & ((1U << kSharedRankShift) - 1);
  if (event.action == MbarrierAction::kInvalidate) {
    known.erase(offset);
  } else {
    known.insert(offset);
  }
}

std::string TraceObserver::barriers_text(const Warp& warp) const {
  const auto known = barriers_.find(warp.cta->linear_index);
  if (known == barriers_.end() || known->second.empty()) return {};
  std::string out = "    mbarriers of the CTA\n";
  for (const std::uint32_t offset : known->second) {
    out += fmt::format("      shared {:#07x}: {}\n", offset,
                       mbarrier_describe(warp.cta->shared + offset));
  }
  return out;
}

void TraceObserver::show(Warp& warp, const Insn& insn, std::uint32_t active, bool is_after) {
  const KernelCode& code = *warp.grid->code;
  std::string out;
  if (!is_after) {
    out =
        fmt::format("\n{}  {}\n  {}\n  before\n", code.describe(insn), describe_lanes(warp, active),
                    code.module->text_of(*code.place(insn).syntax, kMostChars));
  } else {
    out = "  after\n";
  }
  const std::string matrix = accumulator_text(warp, insn);
  const bool is_wgmma = code.place(insn).syntax->opcode == "wgmma";
  bool has_matrix = is_after || is_wgmma;  // which adds to what the registers hold
  for (const NamedRow& named : named_rows(code, insn)) {
    if (!(is_after ? named.is_destination : named.is_source)) continue;
    if (named.is_destination && !matrix.empty()) {
      has_matrix = true;
      continue;
    }
    out += lanes_text(warp, named, active);
  }
  if (has_matrix) out += matrix;
  if (!is_after) out += descriptors_text(warp, insn, active);
  if (is_after) out += barriers_text(warp);
  print_(out);
}

void TraceObserver::trace(Warp& warp, const Insn& insn, std::uint32_t active) {
  const KernelCode& code = *warp.grid->code;
  const Instruction& instruction = *code.place(insn).syntax;
  std::string values;
  int num_values = 0;
  for (const NamedRow& named : named_rows(code, insn)) {
    if (!named.is_destination || ++num_values > 4) continue;
    values += (values.empty() ? "  " : ", ") + short_text(warp, named, active);
  }
  const Dim3& cta = warp.cta->index;
  std::string out =
      fmt::format("{},{},{} w{:<2} {:08x} {:>5}  {:<44}{}", cta.x, cta.y, cta.z, warp.index, active,
                  instruction.pos.line, code.module->text_of(instruction, kMostChars), values);
  out.erase(out.find_last_not_of(' ') + 1);
  print_(out + "\n");
}

}  // namespace tilewright::sim
