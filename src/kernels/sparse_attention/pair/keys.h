// The warps that bring keys: from the rows of a cache to half of their dimensions as bf16, as both
// products read them.
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/pair/shared.h"
#include "kernels/sparse_attention/rows.h"
#include "ptx/cp_async.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// Of a warp, which has 8 keys of every block: where they go, and their barriers.
template <KvFormat Format, int LanesOfRow>
class SparsePairKeysBase {
 public:
  __device__ SparsePairKeysBase(const kernels::SparseDecodeParams& params, SparsePairShared& shared,
                                std::int32_t group, std::uint32_t warp)
      : shared_(shared), first_(warp * 8), entries_(params, group, warp * 8) {}

 protected:
  __device__ void wait_free(const PairAt& at) const {
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared_.k_free[at.stage]),
                                      at.parity ^ 1);
  }
  /// The warp's lines of the first box.
  __device__ std::uint8_t* lines(const PairAt& at) const {
    return shared_.keys[at.stage][0] + first_ * kBoxRowBytes;
  }
  __device__ void publish(const PairAt& at) const {
    ptx::fence_proxy_async_shared_cta();
    arrive_at_leader(shared_.k_full[at.stage]);
  }

  SparsePairShared& shared_;
  std::uint32_t first_;
  SparseEntries<Format, 8, LanesOfRow> entries_;
};

/// 8- and 4-bit rows: to registers a block ahead, decoded from there. Of the first cache all but
/// some 160 KB of the SM's 256 are left, so that loads on their way have room.
template <KvFormat Format, int Half>
class SparsePairKeys : SparsePairKeysBase<Format, 4> {
  using Base = SparsePairKeysBase<Format, 4>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;

  struct Raw {
    Share share;
    typename Share::Scales scales;
    SparseChunks rope;
  };

 public:
  using Base::Base;

  __device__ void run() {
    Raw raw[2];
    this->entries_.read();
    for (bool is_more = fetch(raw[0]); is_more;) {
      const bool has_second = fetch(raw[1]);
      convert(raw[0]);
      if (!has_second) break;
      is_more = fetch(raw[0]);
      convert(raw[1]);
    }
  }

 private:
  /// Starts to load the lane's share of its row of the next block.
  __device__ bool fetch(Raw& raw) {
    if (!this->entries_.find()) return false;
    const SparseSource source = this->entries_.sources[0];
    this->entries_.read();
    const std::uint8_t* const data = source.data + Part::kFirst;
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) load(raw.share.plain[box], data, box);
    if constexpr (Half == 1) {
      const std::uint8_t* const rope = data + Part::kRope + lane_.rope_chunk() * 16;
      const std::uint8_t* const other = data + Part::kRope + (lane_.rope_chunk() ^ 4) * 16;
      raw.rope[0] = ptx::ld_global_nc_no_allocate_v4_u32(rope);
      raw.rope[1] = ptx::ld_global_nc_no_allocate_v4_u32(other);
    }
    load_scales(raw.scales, source.scales + Part::kFirstScale);
    return true;
  }
  __device__ void load(uint4& codes, const std::uint8_t* data, int box) const {
    codes = ptx::ld_global_nc_no_allocate_v4_u32(data + box * 64 + lane_.quarter * 16);
  }
  __device__ void load(uint2& codes, const std::uint8_t* data, int box) const {
    codes = ptx::ld_global_nc_no_allocate_v2_u32(data + box * 32 + lane_.quarter * 8);
  }
  static __device__ void load_scales(std::uint32_t& scales, const std::uint8_t* from) {
    scales = ptx::ld_global_nc_no_allocate_u32(from);
  }
  static __device__ void load_scales(uint4& scales, const std::uint8_t* from) {
    scales = ptx::ld_global_nc_no_allocate_v4_u32(from);
  }

  __device__ void convert(const Raw& raw) {
    this->wait_free(at_);
    std::uint8_t* const to = this->lines(at_);
    const bool is_large = __any_sync(0xffffffffu, Share::has_large(raw.scales));
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
      SparseChunks chunks;
      raw.share.decode(chunks, raw.scales, lane_, box);
      if (is_large) enlarge(chunks, Share::rest(raw.scales, box));
      store(to + box * kPairBoxBytes, lane_.plain_offset(), 16, chunks);
    }
    if (Half == 1) store(to + 3 * kPairBoxBytes, lane_.rope_offset(), 64, raw.rope);
    this->publish(at_);
    at_.advance();
  }
  static __device__ void store(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                               const SparseChunks& chunks) {
    *reinterpret_cast<uint4*>(to + offset) = chunks[0];
    *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
  }
  /// The part of a large scale that decode() leaves out: rare.
  static __device__ void enlarge(SparseChunks& chunks, std::uint32_t factor) {
#pragma unroll
    for (uint4& words : chunks) {
      words = make_uint4(mul_bf16x2(words.x, factor), mul_bf16x2(words.y, factor),
                         mul_bf16x2(words.z, factor), mul_bf16x2(words.w, factor));
    }
  }

  SparseLane lane_;
  PairAt at_;
};

/// bf16 rows go straight to their places, two blocks ahead of what is handed over.
template <int Half>
class SparsePairKeys<KvFormat::kBf16, Half> : SparsePairKeysBase<KvFormat::kBf16, 8> {
  using Base = SparsePairKeysBase<KvFormat::kBf16, 8>;
  static constexpr int kAhead = 2;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    PairAt done;
    int under_way = 0;
    while (this->entries_.find()) {
      this->wait_free(at_);
      copy();
      this->entries_.read();
      at_.advance();
      if (++under_way <= kAhead) continue;
      --under_way;
      ptx::cp_async_wait_group<kAhead>();
      this->publish(done);
      done.advance();
    }
    ptx::cp_async_wait_group<0>();
    for (; under_way > 0; --under_way, done.advance()) this->publish(done);
  }

 private:
  __device__ void copy() const {
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(this->lines(at_));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t line = row + i * 4;
      const std::uint8_t* const from =
          this->entries_.sources[i].data + Half * (kPairHalfDims * 2) + chunk * 16;
#pragma unroll
      for (int box = 0; box < kPairBoxes; ++box) {
        ptx::cp_async_cg_shared_global_16(
            to + box * kPairBoxBytes + line * kBoxRowBytes + chunk_in_line(line, chunk),
            from + box * kBoxRowBytes, 16);
      }
    }
    ptx::cp_async_commit_group();
  }

  PairAt at_;
};

}  // namespace tilewright::tile
