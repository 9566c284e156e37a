#include "sim/report/access_cost.h"
#include "sim/time/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewright::sim {

void Engine::handle_access(PlayingWarp& warp, const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kShared: {
      const double through = through_shared(warp, event.a);
      // The latency is that of one wavefront, which is in `through` already.
      return set_results(warp, through - 1 + kernel_.costs[op_of(warp).insn].latency,
                         WaitCause::kSharedData);
    }
    case TraceKind::kRemoteShared:
      return access_remote(warp, event);
    case TraceKind::kLocal:
      return set_results(warp,
                         through_shared(warp, event.a / double{kCacheLineBytes}) + p_.l1_latency,
                         WaitCause::kSharedData);
    case TraceKind::kGlobal:
      if (!event.is_write) return load_global(warp, event);
      through_shared(warp, static_cast<double>(event.b));
      warp.stored = std::max(
          warp.stored, request(*warp.cta->sm, event.area, double{kSectorBytes} * event.a, true));
      return;
    default:  // kLine: load_global() has seen it
      return;
  }
}

// Stores go on while few enough are under way.
void Engine::access_remote(PlayingWarp& warp, const TraceEvent& event) {
  const double bytes = double{kCacheLineBytes} * event.a;
  const double rate = event.is_write ? p_.remote_store_bytes : p_.remote_load_bytes;
  const double through = through_shared(warp, event.a);
  const double sent = std::max(through, warp.cta->sm->remote.serve(now_, bytes / rate));
  if (!event.is_write) {
    return set_results(warp, sent + p_.remote_shared_latency, WaitCause::kSharedData);
  }
  warp.stored = std::max(warp.stored, sent + p_.remote_shared_latency);
  const double queue = p_.remote_stores_queued / rate;
  if (sent - now_ > queue) delay(sent - now_ - queue, WaitCause::kPipe);
}

void Engine::load_global(PlayingWarp& warp, const TraceEvent& event) {
  const PreparedOp& op = op_of(warp);
  const auto* const events = warp.trace->events->data() + op.first_event;
  L1Cache& l1 = warp.cta->sm->l1;
  const auto first = warp.event + 1;
  std::uint32_t num_lines = 0, num_missed = 0;
  double others = 0;  // when lines are there that others asked for
  while (warp.event + 1 < op.num_events && events[warp.event + 1].kind == TraceKind::kLine) {
    const std::uint64_t line = events[++warp.event].b;
    ++num_lines;
    if (const auto* const known = l1.touch(line_of_cta(*warp.cta, line)); known != nullptr) {
      others = std::max(others, known->ready);
      continue;
    }
    ++num_missed;
    others = std::max(others, line_under_way(*warp.cta, event.area, line));
  }
  const double through =
      through_shared(warp, static_cast<double>(std::max<std::uint64_t>(1, event.b)));
  if (event.is_read) {  // an atomic
    request(*warp.cta->sm, event.area, double{kSectorBytes} * event.a, false);
    return set_results(warp, through + p_.atomic_latency, WaitCause::kGlobalData);
  }
  const double part = num_lines == 0 ? 1 : static_cast<double>(num_missed) / num_lines;
  if (part == 0) {
    return set_results(warp, std::max(through + p_.l1_latency, others), WaitCause::kGlobalData);
  }
  const double done =
      std::max({through, others,
                request(*warp.cta->sm, event.area, double{kSectorBytes} * event.a * part, false)});
  for (std::uint32_t i = 0; num_missed != 0 && i < num_lines; ++i) {
    const std::uint64_t line = line_of_cta(*warp.cta, events[first + i].b);
    l1.arrives(line, done);
  }
  set_results(warp, done, WaitCause::kGlobalData);
}

// A trace that is played twice stands for two CTAs, whose data are not the same.
std::uint64_t Engine::line_of_cta(const PlayingCta& cta, std::uint64_t line) {
  return line ^ cta.instance << 44;
}

// CTAs that start with the launch come to a line that they share at about the same time: one of
// them asks HBM for it, and the others wait for the same answer. The bytes are is_miss()'s matter.
// What the launch itself writes need not come from HBM.
double Engine::line_under_way(const PlayingCta& cta, std::uint16_t area, std::uint64_t line) {
  if (!cta.is_of_start || area >= memory_.miss.size() || memory_.miss[area] == 0) return 0;
  if (area < memory_.is_written.size() && memory_.is_written[area]) return 0;
  return lines_there_.try_emplace(line, now_ + p_.hbm_shared_latency).first->second;
}

// Misses come as regularly as their part of the requests allows: a quarter is each fourth. The
// first requests of a launch miss more often than those that come to what others have read.
bool Engine::is_miss(std::uint16_t area, double bytes) {
  if (area >= misses_.size()) return false;
  double chance = memory_.miss[area];
  const bool is_shared = chance > 0 && chance < 1;
  if (is_shared && area < memory_.asked.size() && memory_.asked[area] > 0) {
    chance = std::exp(-memory_.fading[area] * std::min(1.0, asked_[area] / memory_.asked[area]));
    asked_[area] += bytes;
  }
  misses_[area] += chance;
  if (misses_[area] < 1) return false;
  misses_[area] -= 1;
  return true;
}

double Engine::written_back(double bytes) {
  const double dirty = std::min(dirty_bytes_, bytes * dirty_bytes_ / p_.l2_bytes);
  dirty_bytes_ -= dirty;
  return dirty;
}

// HBM turns from reads to writes and back: the more often the more there is of both, for up to a
// part of its time.
double Engine::turned(double bytes, bool is_write) {
  (is_write ? written_ : read_) += bytes;
  const double turns =
      std::min(p_.hbm_turn * std::min(read_, written_), p_.hbm_turn_part * (read_ + written_));
  return std::max(0.0, turns - std::exchange(turned_, std::max(turned_, turns)));
}

// L2 and HBM serve the SMs that are played one after the other. Each stands for its part of all,
// and so asks for as many times its bytes.
double Engine::request(Sm& sm, std::uint16_t area, double bytes, bool is_write) {
  Server& port = is_write ? sm.port_out : sm.port_in;
  const double all = bytes * memory_.active_sms / static_cast<double>(num_sms_);
  double done = port.serve(now_, bytes / p_.sm_bytes);
  done = std::max(done, l2_.serve(now_, all / p_.l2_bytes_per_clock));
  if (!is_miss(area, bytes)) return done + p_.l2_latency;
  const double moved = all + written_back(all) + turned(all, is_write);
  done = std::max(done, hbm_.serve(now_, moved / p_.hbm_bytes_per_clock));
  const double lines = std::max(1.0, bytes / double{kCacheLineBytes});
  return done + p_.hbm_latency + p_.hbm_spread * std::log2(lines);
}

double Engine::through_shared(PlayingWarp& warp, double wavefronts) {
  constexpr double kQueued = 32;
  const double done = warp.cta->sm->serve_shared(now_, wavefronts * p_.shared_interval);
  if (done - now_ > kQueued) delay(done - now_ - kQueued, WaitCause::kPipe);
  return done;
}

}  // namespace tilewright::sim
