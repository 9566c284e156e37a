#include "sim/time/engine.h"

#include <algorithm>
#include <utility>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostSpans = 50000;  ///< some 9 MB as JSON
constexpr double kShortestSpan = 4;        ///< clocks; shorter ones would fill the timeline

}  // namespace

// Waits and their causes.

std::uint32_t Engine::line_of(std::uint32_t insn) const {
  const Instruction* const text = kernel_.code.place(kernel_.code.insns[insn]).syntax;
  return text == nullptr ? 0 : text->pos.line;
}

void Engine::show(const TimelineSpan& span) {
  if (timeline_.size() < kMostSpans) timeline_.push_back(span);
}

void Engine::account(PlayingWarp& warp, WaitCause cause, double end) {
  const double clocks = end - warp.wait_began;
  const std::int32_t ended_by = std::exchange(warp.ended_by, -1);
  if (clocks <= 0) return;
  const std::uint32_t insn = op_of(warp).insn;
  waits_[static_cast<std::size_t>(cause)] += clocks;
  if (lines_[insn].empty()) lines_[insn].resize(kNumWaitCauses);
  lines_[insn][static_cast<std::size_t>(cause)] += clocks;
  if (warp.cta->is_shown && clocks >= kShortestSpan) {
    show({warp.wait_began, end, static_cast<std::int32_t>(warp.index), cause, line_of(insn),
          ended_by});
  }
  warp.wait_began = end;
}

void Engine::wait_until(PlayingWarp& warp, WaitCause cause, double time) {
  account(warp, cause, time);
  wake(warp, time);
}

bool Engine::await_time(PlayingWarp& warp, WaitCause cause, double time) {
  if (time > now_) return wait_until(warp, cause, time), false;
  return true;
}

void Engine::delay(double clocks, WaitCause cause) {
  own_delay_ = clocks;
  own_cause_ = cause;
}

// Issue.

void Engine::advance(PlayingWarp& warp) {
  for (;;) {
    if (warp.next == warp.trace->ops.size()) return end_warp(warp);
    if (!warp.is_issued && !issue(warp)) return;
    if (!handle_events(warp)) return;
    if (finish(warp)) return;
  }
}

bool Engine::handle_events(PlayingWarp& warp) {
  const PreparedOp& op = op_of(warp);
  while (warp.event < op.num_events) {
    if (!handle(warp, (*warp.trace->events)[op.first_event + warp.event])) return false;
    ++warp.event;
    warp.is_woken = false;
    if (own_delay_ > 0) {  // the rest of the instruction comes after it
      wait_until(warp, own_cause_, now_ + std::exchange(own_delay_, 0));
      return false;
    }
  }
  return true;
}

bool Engine::issue(PlayingWarp& warp) {
  const std::uint32_t insn = op_of(warp).insn;
  warp.slots = 0;
  if (!kernel_.machine.is_empty()) {
    const MachineOp* const op = machine_of(warp);
    if (op != nullptr && !issue_machine(warp, *op)) return false;
  } else {
    WaitCause cause = WaitCause::kOperand;
    const double operands = operands_ready(warp, insn, cause);
    if (kernel_.costs[insn].is_free) {
      set_results(warp, operands, cause);
    } else {
      if (operands > now_) return wait_until(warp, cause, operands), false;
      if (!issue_to_pipe(warp, kernel_.costs[insn])) return false;
    }
  }
  warp.is_issued = true;
  warp.event = 0;
  return true;
}

bool Engine::fetch(PlayingWarp& warp, const MachineOp& op) {
  const std::uint32_t line = op.place / CodeCache::kLineInstructions;
  if (warp.code_line != line) {
    warp.code_line = line;
    warp.code_ready = warp.cta->sm->code.use(line, now_);
  }
  return await_time(warp, WaitCause::kCode, warp.code_ready);
}

bool Engine::issue_machine(PlayingWarp& warp, const MachineOp& op) {
  if (!fetch(warp, op)) return false;
  for (std::size_t i = 0; i < warp.counter.size(); ++i) {
    if ((op.wait_mask >> i & 1) == 0 || warp.counter[i] <= now_) continue;
    return wait_until(warp, warp.counter_cause[i], warp.counter[i]), false;
  }
  if (!issue_to_pipe(warp, op.cost)) return false;
  hold_counter(warp, op.read_counter, now_ + p_.operand_read, WaitCause::kOperand);
  return true;
}

void Engine::hold_counter(PlayingWarp& warp, std::uint8_t counter, double time, WaitCause cause) {
  if (counter >= warp.counter.size() || warp.counter[counter] >= time) return;
  warp.counter[counter] = time;
  warp.counter_cause[counter] = cause;
}

bool Engine::issue_to_pipe(PlayingWarp& warp, const InsnCost& cost) {
  Sm& sm = *warp.cta->sm;
  Sm::Scheduler& scheduler = sm.schedulers[warp.scheduler];
  double& pipe = scheduler.pipe_free[static_cast<std::size_t>(cost.pipe)];
  // One instruction waits in front of the special function unit without holding the warp.
  const double accepted = pipe - (cost.pipe == Pipe::kSpecial ? cost.interval : 0);
  if (accepted > now_) return wait_until(warp, WaitCause::kPipe, accepted), false;
  if (scheduler.free_at > now_) {
    return wait_until(warp, WaitCause::kIssue, scheduler.free_at), false;
  }
  warp.slots = cost.slots;
  scheduler.free_at = now_ + warp.slots;
  sm.issue_busy += warp.slots;
  const double started = std::max(now_, pipe);
  const double interval = interval_of(sm, scheduler, cost);
  pipe = started + interval;
  if (cost.pipe == Pipe::kMmaSync) sm.lower_clock(now_, pipe, p_.tensor_clock_hold);
  if (is_beside_mma_sync(scheduler, cost)) {
    const bool is_one_clock = cost.pipe == Pipe::kFma && cost.interval <= p_.fma_interval;
    scheduler.pipe_free[static_cast<std::size_t>(Pipe::kMmaSync)] +=
        is_one_clock ? p_.fma_delays_mma_sync : p_.alu_delays_mma_sync;
  }
  sm.pipe_busy[static_cast<std::size_t>(cost.pipe)] += interval;
  const bool is_shared = cost.pipe == Pipe::kShared;
  set_results(warp, started + cost.latency,
              is_shared ? WaitCause::kSharedData : WaitCause::kOperand);
  ++num_instructions_;
  return true;
}

// Products take part of the register file's ports: what warps compute meanwhile takes longer. Those
// of mma.sync, whose operands are all registers, do so at their scheduler, and are held up.
double Engine::interval_of(const Sm& sm, const Sm::Scheduler& scheduler,
                           const InsnCost& cost) const {
  const bool is_one_clock = cost.pipe == Pipe::kFma && cost.interval <= p_.fma_interval;
  if (sm.has_wgmma && sm.tensor.free_at > now_) {
    switch (cost.pipe) {
      case Pipe::kFma:
        return cost.interval * p_.fma_beside_products;
      case Pipe::kAlu:
        return cost.interval * p_.alu_beside_products;
      case Pipe::kSpecial:
        return cost.interval * p_.special_beside_products;
      default:
        return cost.interval;
    }
  }
  if (!is_beside_mma_sync(scheduler, cost)) return cost.interval;
  if (cost.pipe == Pipe::kSpecial) return cost.interval;
  return cost.interval * (is_one_clock ? p_.fma_beside_mma_sync : p_.alu_beside_mma_sync);
}

bool Engine::is_beside_mma_sync(const Sm::Scheduler& scheduler, const InsnCost& cost) const {
  const bool computes =
      cost.pipe == Pipe::kFma || cost.pipe == Pipe::kAlu || cost.pipe == Pipe::kSpecial;
  return computes && scheduler.pipe_free[static_cast<std::size_t>(Pipe::kMmaSync)] > now_;
}

bool Engine::finish(PlayingWarp& warp) {
  const PreparedOp& op = op_of(warp);
  const MachineOp* const machine = machine_of(warp);
  const InsnCost& cost = machine == nullptr ? kernel_.costs[op.insn] : machine->cost;
  double next = now_;
  if (machine != nullptr || (kernel_.machine.is_empty() && !cost.is_free)) {
    const double stall = machine == nullptr ? 1 : machine->stall;
    next += std::max(stall, warp.slots) + cost.stall;
    if (machine != nullptr && machine->is_wide_fence) next += fence_clocks(warp);
    if (cost.ends_block && warp.next + 1 < warp.trace->ops.size() &&
        warp.trace->ops[warp.next + 1].insn < op.insn) {
      next += p_.branch_redirect;
    }
    if (next > now_ + warp.slots) account(warp, WaitCause::kOwn, next);
  }
  warp.is_issued = false;
  ++warp.next;
  warp.wait_began = std::max(warp.wait_began, next);
  if (next == now_) return false;
  if (!events_.empty() && events_.top().time < next) return wake(warp, next), true;
  // Nothing happens before: the warp goes on without a way through the queue.
  now_ = next;
  end_ = std::max(end_, now_);
  return false;
}

// Operands and results.

double Engine::operands_ready(const PlayingWarp& warp, std::uint32_t insn, WaitCause& cause) const {
  double time = 0;
  const ValueNumbers& values = kernel_.order.values;
  const std::uint32_t begin = values.first[insn] + values.num_written[insn];
  for (std::uint32_t i = begin; i < values.first[insn + 1]; ++i) {
    const std::uint32_t number = values.numbers[i];
    if (warp.ready[number] <= time) continue;
    time = warp.ready[number];
    cause = warp.producer[number];
  }
  return time;
}

void Engine::set_results(PlayingWarp& warp, double time, WaitCause producer) {
  if (!kernel_.machine.is_empty()) {
    const MachineOp* const op = machine_of(warp);
    if (op != nullptr) hold_counter(warp, op->write_counter, time, producer);
    return;
  }
  const ValueNumbers& values = kernel_.order.values;
  const std::uint32_t insn = op_of(warp).insn, begin = values.first[insn];
  for (std::uint32_t i = begin; i < begin + values.num_written[insn]; ++i) {
    warp.ready[values.numbers[i]] = time;
    warp.producer[values.numbers[i]] = producer;
  }
}

}  // namespace tilewright::sim
