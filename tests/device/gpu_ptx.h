// Small kernels as PTX text for the tests on a real GPU, with the Params that each one takes. They
// use nothing beyond compute capability 9.0, so that they run on every usable GPU.
#pragma once

#include "device/driver_abi.h"

#include <cstdint>

namespace tilewright::device {

/// out[i] = scale * in[i] + offset for i < count.
struct ScaleParams {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  float scale = 0;
  float offset = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(ScaleParams) == 32);

inline constexpr const char* kScalePtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .align 8 .b8 params[32])
{
  .reg .pred %done;
  .reg .b32 %i, %n, %block, %count;
  .reg .f32 %x, %scale, %offset;
  .reg .b64 %in, %out, %step;
  ld.param.u32 %count, [params+24];
  mov.u32 %block, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %block, %n, %i;
  setp.ge.u32 %done, %i, %count;
  @%done ret;
  ld.param.u64 %in, [params];
  ld.param.u64 %out, [params+8];
  ld.param.f32 %scale, [params+16];
  ld.param.f32 %offset, [params+20];
  cvta.to.global.u64 %in, %in;
  cvta.to.global.u64 %out, %out;
  mul.wide.u32 %step, %i, 4;
  add.u64 %in, %in, %step;
  add.u64 %out, %out, %step;
  ld.global.f32 %x, [%in];
  fma.rn.f32 %x, %x, %scale, %offset;
  st.global.f32 [%out], %x;
  ret;
}
)";

/// Every thread writes its rank in the cluster to out[global thread], after all blocks of the
/// cluster have met. Uses dynamic shared memory up to its last word to show that it is there.
struct ClusterParams {
  std::uint64_t out = 0;
  std::uint32_t dynamic_shared_bytes = 0;
};
static_assert(sizeof(ClusterParams) == 16);

inline constexpr const char* kClusterPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry cluster_rank(.param .align 8 .b8 params[16])
{
  .reg .pred %first;
  .reg .b32 %rank, %i, %n, %block, %bytes, %shared;
  .reg .b64 %out, %step;
  ld.param.u64 %out, [params];
  ld.param.u32 %bytes, [params+8];
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %shared, dynamic;
  add.u32 %shared, %shared, %bytes;
  mov.u32 %i, %tid.x;
  setp.eq.u32 %first, %i, 0;
  @%first st.shared.u32 [%shared+-4], %rank;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ld.shared.u32 %rank, [%shared+-4];
  mov.u32 %block, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.u32 %i, %block, %n, %i;
  cvta.to.global.u64 %out, %out;
  mul.wide.u32 %step, %i, 4;
  add.u64 %out, %out, %step;
  st.global.u32 [%out], %rank;
  ret;
}
)";

/// One block copies the box at the coordinates c0, c1 (c0 innermost) from a 2-D tensor to shared
/// memory by TMA and from there to out, byte by byte: box_bytes of them, at most 4096.
struct alignas(64) BoxParams {
  abi::CUtensorMap map{};
  std::uint64_t out = 0;
  std::int32_t c0 = 0;
  std::int32_t c1 = 0;
  std::uint32_t box_bytes = 0;
};
static_assert(sizeof(BoxParams) == 192);

inline constexpr const char* kBoxPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy_box(.param .align 64 .b8 params[192])
{
  .reg .pred %other, %ready, %done;
  .reg .b32 %thread, %n, %c0, %c1, %bytes, %tile_at, %bar_at, %i, %from;
  .reg .b16 %byte;
  .reg .b64 %map, %out, %to, %state;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 8 .b64 bar;
  mov.b64 %map, params;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [params+128];
  ld.param.s32 %c0, [params+136];
  ld.param.s32 %c1, [params+140];
  ld.param.u32 %bytes, [params+144];
  cvta.to.global.u64 %out, %out;
  mov.u32 %thread, %tid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %tile_at, tile;
  mov.u32 %bar_at, bar;
  setp.ne.u32 %other, %thread, 0;
  @%other bra MEET;
  mbarrier.init.shared::cta.b64 [%bar_at], 1;
  fence.proxy.async;
MEET:
  bar.sync 0;
  @%other bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar_at], %bytes;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%tile_at], [%map, {%c0, %c1}], [%bar_at];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %ready, [%bar_at], 0;
  @!%ready bra WAIT;
  mov.u32 %i, %thread;
NEXT:
  setp.ge.u32 %done, %i, %bytes;
  @%done ret;
  add.u32 %from, %tile_at, %i;
  ld.shared.u8 %byte, [%from];
  cvt.u64.u32 %to, %i;
  add.u64 %to, %to, %out;
  st.global.u8 [%to], %byte;
  add.u32 %i, %i, %n;
  bra NEXT;
}
)";

}  // namespace tilewright::device
