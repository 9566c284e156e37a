// Shows what warps do: every instruction, or registers and barriers at a line.
#pragma once

#include "sim/event/observer.h"
#include "sim/state/code.h"
#include "sim/trace/trace_filter.h"

#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace tilewright::sim {

struct TraceOptions {
  std::vector<TraceFilter> traces;       ///< a line of text for each instruction
  std::vector<TraceFilter> breakpoints;  ///< registers before and after
  std::uint64_t max_stops = 16;          ///< at breakpoints; the rest is counted
  std::uint64_t max_lines = 10'000;      ///< of traces
};

class TraceObserver final : public Observer {
 public:
  TraceObserver(TraceOptions options, std::function<void(std::string_view)> print);

  void launch_started(Grid& grid) override;
  void launch_ended(Grid& grid) override;
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void executed(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;

 private:
  void show(Warp& warp, const Insn& insn, std::uint32_t active, bool is_after);
  void trace(Warp& warp, const Insn& insn, std::uint32_t active);
  std::string barriers_text(const Warp& warp) const;
  void say_not_reached(const KernelCode& code);

  TraceOptions options_;
  std::function<void(std::string_view)> print_;
  std::map<std::uint64_t, std::set<std::uint32_t>> barriers_;  ///< by CTA: offsets of mbarriers
  std::uint64_t num_stops_ = 0, num_lines_ = 0;
};

}  // namespace tilewright::sim
