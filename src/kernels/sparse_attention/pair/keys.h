// The warps that bring keys: from the rows of a cache to half of their dimensions as bf16, as both
// products read them.
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/pair/shared.h"
#include "kernels/sparse_attention/placed_scale.h"
#include "kernels/sparse_attention/rows.h"
#include "ptx/cp_async.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// Where the 8 keys go that a warp has of every block, and their barriers.
template <class Form>
class PairLines {
 public:
  __device__ PairLines(SparsePairShared<Form>& shared, std::uint32_t warp)
      : shared_(shared), first_(warp * 8) {}

  __device__ void wait_free(const PairAt& at) const {
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared_.k_free[at.stage]),
                                      at.parity ^ 1);
  }
  /// The warp's lines of the first box.
  __device__ std::uint8_t* of_box(const PairAt& at) const {
    return shared_.keys[at.stage][0] + first_ * kBoxRowBytes;
  }
  /// Where chunk `chunk` of the tail of a line of the warp's is.
  __device__ std::uint8_t* tail(const PairAt& at, std::uint32_t line, std::uint32_t chunk) const {
    return shared_.tail.tails[at.stage] + (first_ + line) * kPairTailRowBytes +
           ((chunk ^ (line / 2 & 3)) << 4);
  }
  __device__ void publish(const PairAt& at) const {
    ptx::fence_proxy_async_shared_cta();
    arrive_at_leader(shared_.k_full[at.stage]);
  }

 private:
  SparsePairShared<Form>& shared_;
  std::uint32_t first_;
};

/// Of a warp that decodes: four lanes a row.
template <KvFormat Format>
class SparsePairKeysBase {
 public:
  using Form = PairForm<kv_dims(Format)>;

  __device__ SparsePairKeysBase(const kernels::SparsePairParams& params,
                                SparsePairShared<Form>& shared, std::int32_t group,
                                std::uint32_t warp)
      : lines_(shared, warp), entries_(params.decode, group, warp * 8) {}

 protected:
  PairLines<Form> lines_;
  SparseEntries<Format, 8, 4> entries_;
};

/// 8- and 4-bit rows: to registers a block ahead, decoded from there. Of the first cache all but
/// some 160 KB of the SM's 256 are left, so that loads on their way have room.
template <KvFormat Format, int Half>
class SparsePairKeys : SparsePairKeysBase<Format> {
  using Base = SparsePairKeysBase<Format>;
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
    this->lines_.wait_free(at_);
    std::uint8_t* const to = this->lines_.of_box(at_);
    const bool is_large = __any_sync(0xffffffffu, Share::has_large(raw.scales));
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
      SparseChunks chunks;
      raw.share.decode(chunks, raw.scales, lane_, box);
      if (is_large) enlarge(chunks, Share::rest(raw.scales, box));
      store(to + box * kPairBoxBytes, lane_.plain_offset(), 16, chunks);
    }
    if (Half == 1) store(to + 3 * kPairBoxBytes, lane_.rope_offset(), 64, raw.rope);
    this->lines_.publish(at_);
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

/// Records of 656 bytes, of which a half has two blocks of 128 codes: likewise.
template <int Half>
class SparsePairKeys<KvFormat::kFp8Mla, Half> : SparsePairKeysBase<KvFormat::kFp8Mla> {
  using Base = SparsePairKeysBase<KvFormat::kFp8Mla>;

  struct Raw {
    uint4 plain[kPairBoxes];
    uint2 scales;
    uint4 tail;
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
  __device__ bool fetch(Raw& raw) {
    if (!this->entries_.find()) return false;
    const std::uint8_t* const row = this->entries_.sources[0].data;
    this->entries_.read();
    const std::uint8_t* const codes = row + Half * kPairHalfDims + lane_.quarter * 16;
#pragma unroll
    for (int box = 0; box < kPairBoxes; ++box)
      raw.plain[box] = ptx::ld_global_nc_no_allocate_v4_u32(codes + box * kBoxColumns);
    raw.scales = ptx::ld_global_nc_no_allocate_v2_u32(row + kKvFp8MlaScales + Half * 8);
    raw.tail = ptx::ld_global_nc_no_allocate_v4_u32(row + kv_plain_bytes(KvFormat::kFp8Mla) +
                                                    Half * kPairTailRowBytes + lane_.quarter * 16);
    return true;
  }
  __device__ void convert(const Raw& raw) {
    this->lines_.wait_free(at_);
    decode(raw, 0, __uint_as_float(raw.scales.x));
    decode(raw, 1, __uint_as_float(raw.scales.y));
    *reinterpret_cast<uint4*>(this->lines_.tail(at_, lane_.row, lane_.quarter)) = raw.tail;
    this->lines_.publish(at_);
    at_.advance();
  }
  /// The two boxes of a block of 128 numbers, which share a scale.
  __device__ void decode(const Raw& raw, int block, float scale) const {
    const PlacedScale factors(scale);
    const bool is_large = __any_sync(0xffffffffu, factors.has_rest());
#pragma unroll
    for (int box = 2 * block; box < 2 * block + 2; ++box) {
      std::uint8_t* const to = this->lines_.of_box(at_) + box * kPairBoxBytes;
      const uint4& codes = raw.plain[box];
      store(to + lane_.plain_offset(), factors, {codes.x, codes.y}, is_large);
      store(to + (lane_.plain_offset() ^ 16), factors, {codes.z, codes.w}, is_large);
    }
  }
  static __device__ void store(std::uint8_t* to, const PlacedScale& factors, const uint2& codes,
                               bool is_large) {
    std::uint32_t words[4];
    factors.decode(words, codes);
    if (is_large) factors.enlarge(words);
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }

  SparseLane lane_;
  PairAt at_;
};

/// The rows of lists of bf16.
template <KvFormat Format>
class SparsePairEntries : public SparseEntries<Format, 8, 8> {
 public:
  __device__ SparsePairEntries(const kernels::SparsePairParams& params, std::int32_t group,
                               std::uint32_t first_row)
      : SparseEntries<Format, 8, 8>(params.decode, group, first_row) {}

  /// Of share `i`: the numbers that are the value, and those behind them.
  __device__ const std::uint8_t* values(int i) const { return this->sources[i].data; }
  __device__ const std::uint8_t* tail(int i) const { return values(i) + kKvDims * 2; }
};

/// Rows of 16 bits go straight to their places, two blocks ahead of what is handed over. `Entries`
/// finds them: two for each lane, eight lanes a row.
template <class Form, class Entries, int Half>
class PairWholeKeys {
  static constexpr int kAhead = 2;

 public:
  template <class Params>
  __device__ PairWholeKeys(const Params& params, SparsePairShared<Form>& shared, std::int32_t group,
                           std::uint32_t warp)
      : lines_(shared, warp), entries_(params, group, warp * 8) {}

  __device__ void run() {
    entries_.read();
    PairAt done;
    int under_way = 0;
    while (entries_.find()) {
      lines_.wait_free(at_);
      copy();
      entries_.read();
      at_.advance();
      if (++under_way <= kAhead) continue;
      --under_way;
      ptx::cp_async_wait_group<kAhead>();
      lines_.publish(done);
      done.advance();
    }
    ptx::cp_async_wait_group<0>();
    for (; under_way > 0; --under_way, done.advance()) lines_.publish(done);
  }

 private:
  __device__ void copy() const {
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(lines_.of_box(at_));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t line = row + i * 4;
      const std::uint8_t* const from = entries_.values(i) + Half * (kPairHalfDims * 2) + chunk * 16;
#pragma unroll
      for (int box = 0; box < kPairBoxes; ++box) {
        ptx::cp_async_cg_shared_global_16(
            to + box * kPairBoxBytes + line * kBoxRowBytes + chunk_in_line(line, chunk),
            from + box * kBoxRowBytes, 16);
      }
    }
    if constexpr (Form::kHasTail) copy_tail();
    ptx::cp_async_commit_group();
  }
  /// Four lanes of a row have its tail's chunks, the other four those of the row four on.
  __device__ void copy_tail() const {
    const std::uint32_t lane = threadIdx.x % 32, chunk = lane % 4, second = lane / 4 % 2;
    const std::uint8_t* const tail = second == 0 ? entries_.tail(0) : entries_.tail(1);
    ptx::cp_async_cg_shared_global_16(
        ptx::shared_address(lines_.tail(at_, lane / 8 + second * 4, chunk)),
        tail + Half * kPairTailRowBytes + chunk * 16, 16);
  }

  PairLines<Form> lines_;
  Entries entries_;
  PairAt at_;
};
template <int Half>
class SparsePairKeys<KvFormat::kBf16, Half>
    : public PairWholeKeys<PairForm<kKvDims>, SparsePairEntries<KvFormat::kBf16>, Half> {
  using PairWholeKeys<PairForm<kKvDims>, SparsePairEntries<KvFormat::kBf16>, Half>::PairWholeKeys;
};
template <int Half>
class SparsePairKeys<KvFormat::kBf16Mla, Half>
    : public PairWholeKeys<PairForm<kKvMlaDims>, SparsePairEntries<KvFormat::kBf16Mla>, Half> {
  using PairWholeKeys<PairForm<kKvMlaDims>, SparsePairEntries<KvFormat::kBf16Mla>,
                      Half>::PairWholeKeys;
};

}  // namespace tilewright::tile
