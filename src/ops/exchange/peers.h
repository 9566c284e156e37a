// What operators over memory of several ranks share: the memory, arguments and the launch.
#pragma once

#include "tilewright/peer_reduce.h"

#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

#include <cstdint>

namespace tilewright::ops {

inline constexpr int kPeerWordBytes = 16;

/// Memory that other ranks reach, without a message.
inline Buffer peer_memory(const Device& device, std::int64_t bytes) {
  constexpr std::int64_t kPage = 2 << 20;  // smaller allocations share one with others
  Buffer buffer(device, static_cast<std::size_t>(ceil_div(bytes, kPage) * kPage));
  buffer.fill(std::byte{0xff});  // kernels::kPeerEmpty
  return buffer;
}

/// Checks arguments and puts those into params that are the same in all such kernels.
template <class Arguments, class Params>
void bind_peers(const ArgumentChecks& checks, const Arguments& a, int ranks, Params& params) {
  for (int i = 0; i < a.num_parts; ++i) {
    const PeerReducePart& part = a.parts.at(static_cast<std::size_t>(i));
    checks.address("in", part.in, kPeerWordBytes);
    checks.address("out", part.out, kPeerWordBytes);
    params.parts[i] = {part.in, part.out};
  }
  for (int r = 0; r < ranks; ++r) {
    params.memory[r] = a.memory.at(static_cast<std::size_t>(r));
    checks.address("memory", params.memory[r], kPeerWordBytes);
  }
  params.given_up = a.given_up;
  params.first_rank = a.rank;
  params.ranks = ranks;
}

/// A plan's one launch. Several ranks of it run on this device and wait for each other.
template <class Plan, class Params>
void launch_parts(const LoadedPlan<Plan>& loaded, int num_parts, const Params& params,
                  void* stream) {
  const Launch& launch = loaded.plan().launches[0];
  device::LaunchConfig config = num_parts == 1 ? dependent_launch(launch) : plain_launch(launch);
  config.grid.y = static_cast<std::uint32_t>(num_parts);
  config.is_cooperative = num_parts > 1;
  loaded.entries[0].launch(config, params, loaded.stream(stream));
}

}  // namespace tilewright::ops
