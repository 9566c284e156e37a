#include "verify/counted_occupancy.h"

#include "arch/limits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

using nlohmann::json;

void use_real_registers(json& kernel, const EmbeddedKernel& facts) {
  constexpr int kLanes = arch::kWarpThreads, kSchedulers = 4, kUnit = 256;  // registers of a warp
  constexpr arch::Limits kSm = arch::kSm90a;  // those of sm_100a and sm_103a are the same here
  const json& block = kernel.at("block");
  const int threads = block[0].get<int>() * block[1].get<int>() * block[2].get<int>();
  const int warps = (threads + kLanes - 1) / kLanes;
  const int a_warp = (facts.registers * kLanes + kUnit - 1) / kUnit * kUnit;
  const int resident = kSm.registers_per_sm / kSchedulers / std::max(a_warp, 1) * kSchedulers;
  const int shared = kernel.at("static_shared_bytes").get<int>() +
                     kernel.at("dynamic_shared_bytes").get<int>() +
                     kSm.shared_bytes_reserved_per_cta;
  const int by_registers = resident / warps, by_threads = kSm.max_threads_per_sm / kLanes / warps;
  const int by_shared = kSm.shared_bytes_per_sm / std::max(shared, 1);
  const int ctas = std::min({by_registers, by_threads, by_shared, kSm.max_ctas_per_sm});
  json& occupancy = kernel["occupancy"];
  occupancy["ctas_per_sm"] = ctas;
  occupancy["warps_per_sm"] = ctas * warps;
  occupancy["registers"] = facts.registers;
  occupancy["limited_by"] = ctas == by_threads     ? "threads"
                            : ctas == by_registers ? "registers"
                            : ctas == by_shared    ? "shared memory"
                                                   : "the number of CTAs";
}

}  // namespace tilewright::cli
