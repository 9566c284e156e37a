// targets: sm_90a sm_100f
//
// Routing, a warp per token: route_token.h.
//
// Limit: latency. A token costs about topk * 40 instructions of a warp and one read of its logits;
// 8192 tokens of 256 experts are 8 MB, 2 us of HBM.
#include "kernels/moe/own_expert.h"
#include "kernels/moe/route.h"
#include "kernels/moe/route_token.h"
#include "ptx/grid_dependency.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kMoeRouteThreads)
    moe_route(const __grid_constant__ tilewright::kernels::MoeRouteOwnParams params) {
  using namespace tilewright::kernels;
  tilewright::ptx::griddepcontrol_wait();
  tilewright::ptx::griddepcontrol_launch_dependents();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int token = static_cast<int>(blockIdx.x) * kMoeRouteTokens + threadIdx.x / 32;
  if (token >= params.tokens) return;
  const RoutedExpert routed = route_token(params, token, lane);
  if (lane >= params.topk) return;
  const std::int64_t slot = static_cast<std::int64_t>(token) * params.topk + lane;
  params.ids[slot] = own_expert(routed.id, params.first, params.own, params.experts);
  params.weights[slot] = routed.weight;
}
