#include "sim/time/sm_engine.h"

#include "sim/report/tensor_work.h"
#include "sim/time/engine.h"

#include <algorithm>

namespace tilewright::sim {

KernelTiming::KernelTiming(const KernelCode& kernel_code, const DeviceModel& device,
                           const TimeParameters& time, const std::vector<MachineInsn>& machine_code)
    : code(kernel_code),
      model(device),
      parameters(time),
      costs(insn_costs(code, parameters)),
      order(issue_order(code, costs)) {
  if (!machine_code.empty()) machine = machine_schedule(code, machine_code, costs, parameters);
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Instruction* const text = code.place(code.insns[i]).syntax;
    tensor_rate.push_back(
        text == nullptr ? 0 : sim::tensor_rate(model.rates.tensor, tensor_work(*text).type));
  }
}

EngineResult play(const KernelTiming& kernel, const MemoryShare& memory,
                  std::span<const PlaceQueue> queues, std::uint32_t slots, const Around& around) {
  return Engine(kernel, memory, queues, slots, around).run();
}

}  // namespace tilewright::sim
