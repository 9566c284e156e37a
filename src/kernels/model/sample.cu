// targets: sm_90a sm_100f
//
// The next token of each row of logits. A cluster of CTAs has a row, each a slice of the vocabulary
// that it reads once and keeps in shared memory, as keys that order like the numbers:
//
//   load: keys, the best token | top_k: the key that so many are not below | min_p: a key | top_p:
//   the key from which on weights reach their share of the sum | among what is left the token with
//   the largest logit / temperature + noise of Gumbel's distribution, which is a draw by softmax
//
// Keys are found digit by digit, four bits a pass: of each of 16 digits a thread keeps the sum of
// what is not below it. Keys that differ in earlier digits are passed over, most of them after
// three passes. Weights are whole multiples of 2^-43 of the largest, so that sums do not depend on
// their order, on the size of the cluster or on the number of threads.
//
// Noise is a function of seed, sequence, position and token. So what a row gives does not depend on
// the rows beside it.
//
// Limit: reading the logits, 4 bytes a token: 64 rows of 129,280 are 33 MB, 8 us from HBM, less
// where they are still in L2. Greedy rows do nothing else. Noise costs about 70 instructions a
// token (ten rounds of Philox for four, two logarithms), top_k or top_p about 60 for each of the
// first three passes.
// Measured: H100, rows of 129,280 in f32, 1 / 8 / 64 of them: greedy 7.0 / 7.1 / 24 us, temperature
// 23 / 23 / 80, top_k 51 / 52 / 181, top_p 103 / 102 / 352.
// Sources: Gumbel-max: folklore; Philox: philox.h.
#include "kernels/model/column4.h"
#include "kernels/model/philox.h"
#include "kernels/model/sample.h"
#include "ptx/cluster.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/entry.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr int kMaxWarps = kSampleMaxThreads / 32;
constexpr int kDigits = 16;
constexpr std::uint32_t kKeyOfMinusInfinity = 0x007fffffu, kKeyOfInfinity = 0xff800000u;
constexpr std::uint32_t kNothing = 0;  // below the key of -inf: no token of the vocabulary
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kWeightUnits = 0x1p43f;

// Orders like the float; -0 like 0, NaN like -inf.
__device__ std::uint32_t order_key(float x) {
  const float clean = isnan(x) ? -INFINITY : x + 0.0f;
  const std::uint32_t bits = __float_as_uint(clean);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float value_of(std::uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

struct Shared {
  std::uint64_t of_warps[kMaxWarps][kDigits];
  std::uint64_t of_cta[2][kDigits];  // turn by turn: a CTA may be one reduction ahead of another
  std::uint64_t of_row[kDigits];
};

// A CTA's part of a row.
struct Slice {
  Shared& shared;
  std::uint32_t* keys;
  std::int32_t begin, count;  // columns; count of those in the vocabulary
  std::uint32_t rank, ctas;
  std::uint32_t turn;

  __device__ void sync() const {
    if (ctas > 1) {
      ptx::cluster_sync();
    } else {
      __syncthreads();
    }
  }
  // function(key, token) for each token once, by some thread.
  template <class Function>
  __device__ void for_each(Function&& function) const {
    for (auto at = static_cast<std::int32_t>(threadIdx.x); at < count;
         at += static_cast<std::int32_t>(blockDim.x))
      function(keys[at], begin + at);
  }
};

__device__ std::uint64_t read_from(const std::uint64_t* word, std::uint32_t rank) {
  const std::uint32_t address =
      ptx::mapa_shared_cluster(static_cast<std::uint32_t>(__cvta_generic_to_shared(word)), rank);
  return std::uint64_t{ptx::ld_shared_cluster_u32(address + 4)} << 32 |
         ptx::ld_shared_cluster_u32(address);
}

struct Add {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};
struct Max {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return a > b ? a : b;
  }
};

__device__ std::uint64_t shuffle_xor(std::uint64_t x, int step) {
  const std::uint32_t high = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x >> 32), step);
  return std::uint64_t{high} << 32 | __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x), step);
}

// Over the lanes of a warp, in all of them.
template <class Operation>
__device__ std::uint64_t reduce_warp(std::uint64_t x, Operation&& put_together) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = put_together(x, shuffle_xor(x, step));
  return x;
}

// A lane gives half of its digits away for the other lane's part of those that it keeps.
template <int Half>
__device__ void halve_digits(std::uint64_t (&x)[kDigits]) {
  const bool keeps_high = threadIdx.x & Half;
#pragma unroll
  for (int i = 0; i < Half; ++i) {
    const std::uint64_t low = x[i], high = x[i + Half];
    x[i] = (keeps_high ? high : low) + shuffle_xor(keeps_high ? low : high, Half);
  }
}

// Sums of each digit over the lanes of a warp: lane l gets that of digit l % 16.
__device__ std::uint64_t sum_digits(std::uint64_t (&x)[kDigits]) {
  halve_digits<8>(x);
  halve_digits<4>(x);
  halve_digits<2>(x);
  halve_digits<1>(x);
  return x[0] + shuffle_xor(x[0], kDigits);
}

// The numbers that lanes below `count` of every warp have put together, over the warps and CTAs of
// the row, in all threads: shared.of_row.
template <class Operation>
__device__ void reduce_row(Slice& slice, int count, std::uint64_t of_warp,
                           Operation&& put_together) {
  Shared& shared = slice.shared;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  // By a shuffle: of threadIdx.x / 32 * 128 nvcc 13.0 makes threadIdx.x * 4 where the lane is 0,
  // and then uses that for the other lanes, too.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const auto warps = static_cast<int>(blockDim.x / 32);
  if (lane < count) shared.of_warps[warp][lane] = of_warp;
  __syncthreads();
  slice.turn ^= 1;
  if (warp == 0 && lane < count) {
    std::uint64_t x = shared.of_warps[0][lane];
    for (int w = 1; w < warps; ++w) x = put_together(x, shared.of_warps[w][lane]);
    shared.of_cta[slice.turn][lane] = x;
  }
  slice.sync();
  if (warp == 0 && lane < count) {
    std::uint64_t of_peers[kSampleMaxCluster];  // all are asked before one is waited for
#pragma unroll
    for (int peer = 0; peer < kSampleMaxCluster; ++peer)
      of_peers[peer] = peer < static_cast<int>(slice.ctas)
                           ? read_from(&shared.of_cta[slice.turn][lane], peer)
                           : 0;
    std::uint64_t x = of_peers[0];
#pragma unroll
    for (int peer = 1; peer < kSampleMaxCluster; ++peer) x = put_together(x, of_peers[peer]);
    shared.of_row[lane] = x;
  }
  __syncthreads();
}

template <class Operation>
__device__ std::uint64_t reduce_one(Slice& slice, std::uint64_t mine, Operation&& put_together) {
  reduce_row(slice, 1, reduce_warp(mine, put_together), put_together);
  return slice.shared.of_row[0];
}

// The larger key first; of equal ones the lower token.
__device__ std::uint64_t preference(std::uint32_t key, std::int32_t token) {
  return std::uint64_t{key} << 32 | ~static_cast<std::uint32_t>(token);
}
__device__ std::int32_t token_of(std::uint64_t preferred) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(preferred));
}

// Reads the slice; the best token of the row with its key.
__device__ std::uint64_t load(Slice& slice, const SampleParams& params, std::int32_t row) {
  std::uint64_t best = 0;
  for (auto at = 4 * static_cast<std::int32_t>(threadIdx.x); at < slice.count;
       at += 4 * static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t column = slice.begin + at, part = column / params.part_cols;
    const tile::Column4 x = tile::load4(
        params.logits,
        part * params.part_stride + row * params.row_stride + (column - part * params.part_cols),
        params.is_f32);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t key = at + i < slice.count ? order_key(x.v[i]) : kNothing;
      slice.keys[at + i] = key;
      best = Max()(best, preference(key, column + i));
    }
  }
  return reduce_one(slice, best, Max());
}

// Where a search ended: keys above `key` sum up to `above`, those equal to it to `equal`.
struct Found {
  std::uint32_t key;
  std::uint64_t above, equal;
};

// The largest key such that what is not below it sums up to `wanted`, which all keys together do.
// key_of(key, token), amount(key, token): of a token.
template <class KeyOf, class Amount>
__device__ Found search(Slice& slice, std::uint64_t wanted, KeyOf&& key_of, Amount&& amount) {
  Found found = {0, 0, 0};
  for (int shift = 28; shift >= 0; shift -= 4) {
    std::uint64_t sums[kDigits] = {};  // of what has the digit or a larger one
    slice.for_each([&](std::uint32_t key, std::int32_t token) {
      const std::uint32_t searched = key_of(key, token);
      // Two shifts: by 32 at the first digit.
      if (searched >> shift >> 4 != found.key >> shift >> 4) return;
      const std::uint64_t x = amount(key, token);
      const std::uint32_t digit = searched >> shift & (kDigits - 1);
#pragma unroll
      for (int d = 0; d < kDigits; ++d)
        if (digit >= static_cast<std::uint32_t>(d)) sums[d] += x;
    });
    reduce_row(slice, kDigits, sum_digits(sums), Add());
    const std::uint64_t* const all = slice.shared.of_row;
    int digit = kDigits - 1;
    while (digit > 0 && found.above + all[digit] < wanted) --digit;
    const std::uint64_t larger = digit + 1 < kDigits ? all[digit + 1] : 0;
    found.equal = all[digit] - larger;
    found.above += larger;
    found.key |= static_cast<std::uint32_t>(digit) << shift;
    __syncthreads();  // all have read the sums
  }
  return found;
}

// Tokens that are still in: those with larger keys than `key`, and of those with it the first.
struct Kept {
  std::uint32_t key = kKeyOfMinusInfinity + 1;  // -inf is never in
  std::int32_t last = INT32_MAX;

  __device__ bool has(std::uint32_t of, std::int32_t token) const {
    return of > key || (of == key && token <= last);
  }
};

// What a search leaves of those that were in: the first of equal keys, as many as are wanted.
template <class Amount>
__device__ Kept cut(Slice& slice, const Found& found, std::uint64_t wanted, const Kept& before,
                    Amount&& amount_of_key) {
  const std::uint64_t one = amount_of_key(found.key);
  const std::uint64_t count = found.equal / one;
  const std::uint64_t needed = (wanted - found.above + one - 1) / one;
  if (needed >= count) return {found.key, found.key == before.key ? before.last : INT32_MAX};
  const Found last = search(
      slice, needed,
      [](std::uint32_t, std::int32_t token) { return ~static_cast<std::uint32_t>(token); },
      [&](std::uint32_t key, std::int32_t token) -> std::uint64_t {
        return key == found.key && before.has(key, token) ? 1 : 0;
      });
  return {found.key, static_cast<std::int32_t>(~last.key)};
}

// e^((z - largest) / temperature) in units of 2^-43.
__device__ std::uint64_t weight_of(std::uint32_t key, float largest, float factor) {
  if (key <= kKeyOfMinusInfinity) return 0;
  return static_cast<std::uint64_t>(
      __fmul_rn(ptx::ex2_approx_ftz_f32(__fmul_rn(__fadd_rn(value_of(key), -largest), factor)),
                kWeightUnits));
}

// Which tokens may be drawn.
__device__ Kept choose_kept(Slice& slice, const SampleParams& params, std::int32_t row,
                            float largest, float temperature) {
  const auto same_key = [](std::uint32_t key, std::int32_t) { return key; };
  Kept kept;
  const std::int32_t top_k = params.top_k != nullptr ? params.top_k[row] : 0;
  if (top_k > 0 && top_k < params.vocab) {
    const auto one = [](std::uint32_t) -> std::uint64_t { return 1; };
    const auto wanted = static_cast<std::uint64_t>(top_k);
    const Found found = search(slice, wanted, same_key,
                               [](std::uint32_t, std::int32_t) { return std::uint64_t{1}; });
    if (found.key > kKeyOfMinusInfinity) kept = cut(slice, found, wanted, {.key = kNothing}, one);
  }
  const float min_p = params.min_p != nullptr ? params.min_p[row] : 0.0f;
  if (min_p > 0) {
    const std::uint32_t least = order_key(__fadd_rn(largest, __fmul_rn(temperature, logf(min_p))));
    const std::uint32_t of_best = order_key(largest);
    if (least > kept.key) kept = {min(least, of_best), INT32_MAX};
  }
  const float top_p = params.top_p != nullptr ? params.top_p[row] : 1.0f;
  if (top_p < 1) {
    const float factor = __fdiv_rn(kLog2E, temperature);
    const auto weight = [&](std::uint32_t key) { return weight_of(key, largest, factor); };
    std::uint64_t sum = 0;
    slice.for_each([&](std::uint32_t key, std::int32_t token) {
      if (kept.has(key, token)) sum += weight(key);
    });
    sum = reduce_one(slice, sum, Add());
    const double share = ceil(static_cast<double>(top_p) * static_cast<double>(sum));
    const std::uint64_t wanted = max(std::uint64_t{1}, min(sum, static_cast<std::uint64_t>(share)));
    const Found found = search(slice, wanted, same_key, [&](std::uint32_t key, std::int32_t token) {
      return kept.has(key, token) ? weight(key) : std::uint64_t{0};
    });
    kept = cut(slice, found, wanted, kept, weight);
  }
  return kept;
}

__device__ std::uint32_t word(const uint4& words, std::uint32_t i) {
  return i < 2 ? (i == 0 ? words.x : words.y) : (i == 2 ? words.z : words.w);
}

// Gumbel's noise of random bits: -ln(-ln(1 - v)) with v uniform in (0, 1). Small v count, so that
// these have all 32 bits.
__device__ float gumbel(std::uint32_t bits) {
  const float v = fminf(__fmaf_rn(static_cast<float>(bits), 0x1p-32f, 0x1p-33f), 0x1.fffffep-1f);
  return -logf(-log1pf(-v));
}

// The token that the noise prefers.
__device__ std::int32_t draw(Slice& slice, const SampleParams& params, std::int32_t row,
                             const Kept& kept, float largest, float temperature) {
  const std::uint64_t seed = params.seeds != nullptr ? params.seeds[2 * row] : 0;
  const std::uint64_t sequence = params.seeds != nullptr ? params.seeds[2 * row + 1] : 0;
  const std::int32_t position = params.positions != nullptr ? params.positions[row] : 0;
  const uint2 philox_key =
      make_uint2(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  std::uint64_t best = 0;
  for (auto at = 4 * static_cast<std::int32_t>(threadIdx.x); at < slice.count;
       at += 4 * static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t first = slice.begin + at;
    const uint4 keys = *reinterpret_cast<const uint4*>(slice.keys + at);
    bool is_any = false;
#pragma unroll
    for (std::int32_t i = 0; i < 4; ++i)
      is_any |= at + i < slice.count && kept.has(word(keys, i), first + i);
    if (!is_any) continue;
    const uint4 bits = philox(
        make_uint4(static_cast<std::uint32_t>(first / 4), static_cast<std::uint32_t>(position),
                   static_cast<std::uint32_t>(sequence),
                   static_cast<std::uint32_t>(sequence >> 32)),
        philox_key);
#pragma unroll
    for (std::int32_t i = 0; i < 4; ++i) {
      const std::uint32_t key = word(keys, i);
      if (at + i >= slice.count || !kept.has(key, first + i)) continue;
      const float z = __fdiv_rn(__fadd_rn(value_of(key), -largest), temperature);
      best = Max()(best, preference(order_key(z + gumbel(word(bits, i))), first + i));
    }
  }
  return token_of(reduce_one(slice, best, Max()));
}

// ln softmax(logits)[token], without temperature.
__device__ float log_prob(Slice& slice, const SampleParams& params, std::int32_t row,
                          std::int32_t token, float largest) {
  std::uint64_t sum = 0;
  slice.for_each([&](std::uint32_t key, std::int32_t) { sum += weight_of(key, largest, kLog2E); });
  sum = reduce_one(slice, sum, Add());
  const std::int32_t part = token / params.part_cols;
  const std::int64_t at =
      part * params.part_stride + row * params.row_stride + (token - part * params.part_cols);
  const float z = params.is_f32
                      ? static_cast<const float*>(params.logits)[at]
                      : tile::Bf16::unpack(static_cast<const std::uint16_t*>(params.logits)[at]).x;
  return z - largest - logf(static_cast<float>(sum) / kWeightUnits);
}

__device__ void sample_row(Slice& slice, const SampleParams& params) {
  const auto row = static_cast<std::int32_t>(blockIdx.y);
  const bool is_writer = slice.rank == 0 && threadIdx.x == 0;
  if (params.positions != nullptr && params.positions[row] < 0) {
    if (is_writer) params.ids[row] = -1;
    if (is_writer && params.log_probs != nullptr) params.log_probs[row] = 0;
    return;
  }
  const std::uint64_t best = load(slice, params, row);
  const auto best_key = static_cast<std::uint32_t>(best >> 32);
  const float largest = value_of(best_key);
  const bool is_finite = best_key > kKeyOfMinusInfinity && best_key < kKeyOfInfinity;
  std::int32_t token = is_finite ? token_of(best) : -1;
  const float temperature = params.temperature != nullptr ? params.temperature[row] : 0.0f;
  if (is_finite && temperature >= kSampleLeastTemperature) {
    const Kept kept = choose_kept(slice, params, row, largest, temperature);
    token = draw(slice, params, row, kept, largest, temperature);
  }
  if (params.log_probs != nullptr) {
    const float log_of = is_finite ? log_prob(slice, params, row, token, largest) : 0.0f;
    if (is_writer) params.log_probs[row] = log_of;
  }
  if (is_writer) params.ids[row] = token;
  slice.sync();  // no CTA ends before it was read
}

__device__ void sample(const SampleParams& params) {
  __shared__ Shared shared;
  extern __shared__ __align__(16) std::uint32_t held_keys[];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::int32_t begin = min(static_cast<std::int32_t>(rank) * params.slice, params.vocab);
  Slice slice = {.shared = shared,
                 .keys = held_keys,
                 .begin = begin,
                 .count = min(params.slice, params.vocab - begin),
                 .rank = rank,
                 .ctas = ptx::cluster_nctarank(),
                 .turn = 0};
  sample_row(slice, params);
}

}  // namespace
TILEWRIGHT_KERNEL(sample_rows, SampleParams, __launch_bounds__(kSampleMaxThreads, 2), sample)

}  // namespace tilewright::kernels
