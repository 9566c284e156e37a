#include "sim/report/report.h"

#include "sim/report/access_cost.h"
#include "sim/report/prediction_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::sim {

namespace {

using nlohmann::json;

json dim_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

json usage_json(const Usage& usage) {
  return {{"warp_instructions", usage.warp_instructions},
          {"thread_instructions", usage.thread_instructions},
          {"shared_accesses", usage.shared_accesses},
          {"shared_wavefronts", usage.shared_wavefronts},
          {"shared_bank_conflicts", usage.shared_wavefronts - usage.shared_ideal_wavefronts},
          {"shared_async_bytes", usage.shared_async_bytes},
          {"global_accesses", usage.global_accesses},
          {"global_sectors", usage.global_sectors},
          {"global_requested_bytes", usage.global_sectors * kSectorBytes},
          {"global_used_bytes", usage.global_used_bytes},
          {"bulk_bytes", usage.bulk_bytes},
          {"bulk_delivered_bytes", usage.bulk_delivered_bytes},
          {"local_bytes", usage.local_bytes},
          {"atomics", usage.atomics},
          {"barrier_waits", usage.barrier_waits},
          {"failed_polls", usage.failed_polls},
          {"tensor_flop", usage.tensor_flop}};
}

/// Only what is not 0, so that a line without memory says nothing of memory.
json short_usage_json(const Usage& usage) {
  json out = usage_json(usage);
  for (auto at = out.begin(); at != out.end();) at = *at == 0 ? out.erase(at) : std::next(at);
  return out;
}

json lines_json(const KernelUsage& kernel) {
  json lines = json::array();
  for (const auto& [number, line] : kernel.lines) {
    json entry = short_usage_json(line.usage);
    entry["line"] = number;
    entry["text"] = line.text;
    entry["class"] = name_of(line.insn_class);
    if (kernel.prediction && kernel.prediction->lines.contains(number)) {
      entry["predicted_wait_us"] = line_wait_json(kernel.prediction->lines.at(number));
    }
    if (!line.source.empty()) entry["source"] = line.source;
    lines.push_back(std::move(entry));
  }
  return lines;
}

json bounds_json(const KernelUsage& kernel) {
  json seconds = json::object();
  for (const Bound& bound : kernel.bounds) seconds[bound.unit] = bound.seconds;
  json out = {{"note", kBoundNote}, {"seconds", seconds}};
  if (!kernel.bounds.empty()) out["largest"] = kernel.bounds.front().unit;
  return out;
}

json kernel_json(const KernelUsage& kernel) {
  json classes = json::object();
  for (std::size_t i = 0; i < kernel.by_class.size(); ++i) {
    const Usage& usage = kernel.by_class[i];
    if (usage.warp_instructions == 0) continue;
    classes[std::string(name_of(static_cast<InsnClass>(i)))] = {
        {"warp_instructions", usage.warp_instructions},
        {"thread_instructions", usage.thread_instructions}};
  }
  json source_lines = json::array();
  for (const auto& [place, usage] : kernel.source_lines) {
    json entry = short_usage_json(usage);
    entry["source"] = place;
    source_lines.push_back(std::move(entry));
  }
  const Occupancy& occupancy = kernel.occupancy;
  json out = {{"kernel", kernel.kernel},
              {"module", kernel.module},
              {"launches", kernel.num_launches},
              {"ctas", kernel.num_ctas},
              {"grid", dim_json(kernel.grid)},
              {"block", dim_json(kernel.block)},
              {"cluster", dim_json(kernel.cluster)},
              {"registers_per_thread_estimate", kernel.num_registers},
              {"static_shared_bytes", kernel.static_shared_bytes},
              {"dynamic_shared_bytes", kernel.dynamic_shared_bytes},
              {"local_bytes_per_thread", kernel.local_bytes},
              {"occupancy",
               {{"ctas_per_sm", occupancy.ctas_per_sm},
                {"warps_per_sm", occupancy.warps_per_sm},
                {"max_warps_per_sm", occupancy.max_warps_per_sm},
                {"limited_by", occupancy.limited_by}}},
              {"total", usage_json(kernel.total)},
              {"by_class", classes},
              {"tensor_flop_by_type", kernel.tensor_flop},
              {"touched_global_bytes", kernel.touched_sectors * kSectorBytes},
              {"bounds", bounds_json(kernel)},
              {"lines", lines_json(kernel)},
              {"source_lines", source_lines},
              {"faults", kernel.faults}};
  if (kernel.prediction) out["predicted"] = prediction_json(*kernel.prediction);
  return out;
}

}  // namespace

void Report::add(const KernelUsage& usage) {
  const auto at = std::ranges::find_if(kernels_, [&](const KernelUsage& known) {
    return known.kernel == usage.kernel && known.module == usage.module;
  });
  if (at == kernels_.end()) {
    kernels_.push_back(usage);
  } else {
    at->add(usage);
  }
}

json report_json(const Report& report, const DeviceModel& model) {
  json kernels = json::array();
  for (const KernelUsage& kernel : report.kernels()) kernels.push_back(kernel_json(kernel));
  return {{"schema", 1}, {"device", model.key}, {"kernels", kernels}};
}

}  // namespace tilewright::sim
