// Operands of sparse attention on the host: shapes by name, drawn caches and lists, and float64
// results of single queries.
#pragma once

#include "tilewright/sparse_attention.h"

#include "formats/kv_layout.h"
#include "formats/kv_page.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct SparseShape {
  std::string name;
  std::int64_t heads = 64, q_len = 2;
  std::int64_t window = 128, window_page = 256;
  std::int64_t compressed = 512, compressed_page = 64;
  SparseLengths lengths = SparseLengths::kFull;
  bool is_prefill = false;          ///< bf16 rows; batch counts queries
  double invalid = 0;               ///< share of entries that name no row
  std::int64_t head_dim = kKvDims;  ///< or kKvMlaDims, DeepSeek-V3's
};

/// "flash", "pro", ... as the message of the error lists them.
/// Errors   InvalidArgument
SparseShape find_sparse_shape(const std::string& name);
std::vector<std::string> sparse_shape_names();

/// A cache in host memory and the lists over it.
struct SparseListData {
  SparseList list = {};
  KvPageLayout layout = {};
  std::vector<std::uint8_t> pages;
  std::vector<std::vector<std::int32_t>> indices;  ///< several sets, to be taken in turn
  std::vector<std::int32_t> lengths;               ///< empty: full

  bool is_absent() const { return list.topk == 0; }
};

/// Rows of N(0,1) / 10 and queries of N(0,1), clamped to [-1, 1], as FlashMLA draws them.
struct SparseData {
  SparseAttentionProblem problem;
  std::vector<std::uint16_t> q;
  SparseListData window, compressed;
  std::vector<float> sink;

  /// [heads, 512] and [heads] of one query under a set of indices, in float64.
  struct Exact {
    std::vector<double> out, lse;
  };
  Exact exact(std::int64_t query, std::size_t set) const;
};

/// `sets` lists for each cache, each over the whole cache.
SparseData draw_sparse(const SparseShape& shape, NumberFormat format, std::int64_t batch,
                       std::size_t sets, std::uint64_t seed);

/// Tensors of a safetensors file: q [batch, q_len, heads, 512] (or [queries, heads, 512], q_len 1);
/// window.rows [rows, 512], which become pages of `format`; window.indices [batch, q_len, topk] of
/// I16, I32 or I64; optionally window.lengths [batch] or [batch, q_len] and the same for
/// compressed; optionally sink [heads]. One set of lists.
/// Errors   InvalidArgument naming the tensor; as SafetensorsFile
SparseData load_sparse(const std::string& file, NumberFormat format, std::int64_t page_size);

/// FlashMLA's measures: out within abs 1e-3 or rel 2.01 / 128 of the truth, 1 - 2 xy / (xx + yy) at
/// most 5e-6 (prefill: 8e-4, 3.01 / 128, 7e-6); lse within abs 1e-6 or rel 8.01 / 65536 (2.01).
class SparseDifference {
 public:
  explicit SparseDifference(bool is_prefill) : is_prefill_(is_prefill) {}
  void add_out(double found, double exact) noexcept;
  void add_lse(double found, double exact) noexcept;
  nlohmann::json log(const std::string& reference) const;

 private:
  bool is_prefill_, is_decided_ = true;
  std::int64_t wrong_out_ = 0, wrong_lse_ = 0;
  double products_ = 0, squares_ = 0, max_out_ = 0, max_lse_ = 0;
};

}  // namespace tilewright::cli
