#include "sim/insn/tensor/tensor_pipe.h"

#include "sim/event/finding.h"
#include "sim/insn/async/async_work.h"
#include "sim/state/code.h"

#include <utility>

namespace tilewright::sim {
namespace {

/// The oldest of a CTA's operations takes effect. A fault is one of its instruction.
void run_oldest(Cta& cta) {
  const PipeWork work = std::move(cta.tensor_pipe.front());
  cta.tensor_pipe.pop_front();
  Warp& warp = *work.warp;
  const Warp* const running = std::exchange(cta.cluster->running, &warp);
  const auto at = static_cast<std::uint32_t>(work.insn - cta.grid->code->insns.data());
  const std::uint32_t pc = std::exchange(warp.pc, at);
  work.apply();
  warp.pc = pc;
  cta.cluster->running = running;
}

}  // namespace

namespace {

/// Neighbouring CTAs of those that are resident are on neighbouring SMs, and these get
/// a second one when each has a first. nullptr for CTAs that run alone.
std::shared_ptr<TensorColumns> columns_of(const Cta& cta) {
  const Cluster& cluster = *cta.cluster;
  if (!cluster.slot) return nullptr;
  const std::uint64_t sm =
      (*cluster.slot * cluster.ctas.size() + cta.rank) % cta.grid->device->num_sms;
  std::shared_ptr<TensorColumns>& columns = cta.grid->tensor_columns[sm];
  if (!columns) columns = std::make_shared<TensorColumns>();
  return columns;
}

}  // namespace

TensorMemory& tensor_memory_of(Cta& cta) {
  if (!cta.tensor_memory) {
    const Options& options = cta.grid->options;
    cta.tensor_memory = std::make_shared<TensorMemory>(
        options.tensor_memory_base, options.checks.init || options.checks.tmem, columns_of(cta));
    cta.tensor_memory->owner = describe_cta(cta);
  }
  return *cta.tensor_memory;
}

Cta& peer_of(Warp& warp, std::uint32_t lanes) {
  const auto& ctas = warp.cta->cluster->ctas;
  const std::uint32_t rank = warp.cta->rank ^ 1;
  if (rank >= ctas.size()) {
    fault(FaultKind::kIllegalInstruction, lanes,
          "cta_group::2 needs a cluster with pairs of CTAs: launch with a cluster of an even size");
  }
  if (ctas[rank]->is_done) {
    fault(FaultKind::kClusterBlockNotPresent, lanes, "the peer CTA of cta_group::2 has ended");
  }
  return *ctas[rank];
}

// Each piece of work in the pipe has a stand-in among the cluster's pending work. Which one is
// called does not matter: it is always the oldest of the pipe that takes effect.
void issue_after_tensor(Warp& warp, const Insn& insn, std::function<void()> apply) {
  Cta& cta = *warp.cta;
  if (is_eager(warp)) return apply();
  cta.tensor_pipe.push_back({std::move(apply), &warp, &insn});
  start_async(warp, [&cta] { run_oldest(cta); });
}

void issue_tensor(Warp& warp, const Insn& insn, const TensorOperation& operation,
                  std::function<void()> apply) {
  std::uint64_t token = 0;
  if (warp.observer != nullptr) {
    warp.observer->tensor_issued(warp, insn, operation);
    AsyncOperation shared;
    shared.kind =
        operation.kind == TensorKind::kMma ? AsyncKind::kTensorMma : AsyncKind::kTensorMemoryCopy;
    shared.completion = AsyncCompletion::kTensorCommit;
    shared.lanes = 1u << operation.lane;
    shared.ranges = operation.shared;
    shared.operands = operation.operands;
    token = warp.observer->async_issued(warp, insn, shared);
  }
  issue_after_tensor(warp, insn, [&warp, &insn, token, apply = std::move(apply)] {
    apply();
    finish_async(warp, insn, token);
  });
}

}  // namespace tilewright::sim
