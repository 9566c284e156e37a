// Operands of sparse attention from a safetensors file.
#include "tilewright/cache.h"

#include "base/error.h"
#include "base/safetensors.h"
#include "base/tensor.h"
#include "formats/kv_row.h"
#include "verify/attention/data.h"
#include "verify/sparse_data.h"

namespace tilewright::cli {

namespace {

// Whole numbers of a tensor as int32.
std::vector<std::int32_t> load_sparse_integers(const HostTensor& tensor, const std::string& name) {
  std::vector<std::int32_t> values;
  const auto add = [&](const auto& elems) {
    for (const auto x : elems) values.push_back(static_cast<std::int32_t>(x));
  };
  switch (tensor.dtype()) {
    case DType::kI16:
      add(tensor.elems<std::int16_t>());
      break;
    case DType::kI32:
      add(tensor.elems<std::int32_t>());
      break;
    case DType::kI64:
      add(tensor.elems<std::int64_t>());
      break;
    default:
      fail(ErrorKind::kInvalidArgument, "sparse attention: {} is {}; expected I16, I32 or I64",
           name, to_string(tensor.dtype()));
  }
  return values;
}

void fill_sparse_cache(const HostTensor& rows, const std::string& name, SparseListData& data) {
  require(rows.shape().size() == 2 && rows.shape()[1] == kKvDims, ErrorKind::kInvalidArgument,
          "sparse attention: {} has shape {}; expected [rows, {}]", name, shape_text(rows.shape()),
          kKvDims);
  const std::int64_t page = data.list.cache.page_size, count = rows.shape()[0];
  data.list.cache.num_pages = (count + page - 1) / page;
  data.list.cache = complete(data.list.cache);
  data.layout = kv_page_layout(data.list.cache);
  data.pages.assign(kv_cache_bytes(data.list.cache), 0);
  const std::vector<float> numbers = to_floats(rows.view(), name);
  for (std::int64_t row = 0; row < count; ++row)
    encode_kv_row(data.layout,
                  std::span(numbers).subspan(static_cast<std::size_t>(row * kKvDims), kKvDims), row,
                  data.pages.data());
}

SparseListData load_sparse_list(const SafetensorsFile& file, const std::string& name,
                                NumberFormat format, std::int64_t page_size,
                                const SparseAttentionProblem& p) {
  SparseListData data;
  if (!file.contains(name + ".rows")) return data;
  const HostTensor indices(file.tensor(name + ".indices"));
  const std::int64_t queries = p.batch * p.q_len;
  require(!indices.shape().empty() && indices.num_elems() == queries * indices.shape().back(),
          ErrorKind::kInvalidArgument,
          "sparse attention: {}.indices has shape {}; expected a list for each of {} queries", name,
          shape_text(indices.shape()), queries);
  data.list = {.cache = {.format = format, .page_size = page_size},
               .topk = indices.shape().back(),
               .index_stride = indices.shape().back()};
  fill_sparse_cache(HostTensor(file.tensor(name + ".rows")), name + ".rows", data);
  data.indices.push_back(load_sparse_integers(indices, name + ".indices"));
  if (!file.contains(name + ".lengths")) return data;
  data.lengths =
      load_sparse_integers(HostTensor(file.tensor(name + ".lengths")), name + ".lengths");
  const auto count = static_cast<std::int64_t>(data.lengths.size());
  require(count == p.batch || count == queries, ErrorKind::kInvalidArgument,
          "sparse attention: {}.lengths has {} values; expected {} (of sequences) or {} (of "
          "queries)",
          name, count, p.batch, queries);
  data.list.lengths = count == queries ? SparseLengths::kPerQuery : SparseLengths::kPerBatch;
  return data;
}

}  // namespace

SparseData load_sparse(const std::string& path, NumberFormat format, std::int64_t page_size) {
  const SafetensorsFile file(path);
  const HostTensor q(file.tensor("q"));
  const std::vector<std::int64_t>& shape = q.shape();
  require((shape.size() == 3 || shape.size() == 4) && shape.back() == kKvDims,
          ErrorKind::kInvalidArgument,
          "sparse attention: q has shape {}; expected [batch, q_len, heads, {}] or [queries, "
          "heads, {}]",
          shape_text(shape), kKvDims, kKvDims);
  SparseData data;
  SparseAttentionProblem& p = data.problem;
  p.batch = shape[0];
  p.q_len = shape.size() == 4 ? shape[1] : 1;
  p.heads = shape[shape.size() - 2];
  data.q = to_codes(q.view(), DType::kBF16, "q");
  data.window = load_sparse_list(file, "window", format, page_size, p);
  data.compressed = load_sparse_list(file, "compressed", format, page_size, p);
  p.window = data.window.list;
  p.compressed = data.compressed.list;
  p.has_lse = true;
  if (!file.contains("sink")) return data;
  data.sink = to_floats(HostTensor(file.tensor("sink")).view(), "sink");
  p.has_sink = true;
  require(static_cast<std::int64_t>(data.sink.size()) == p.heads, ErrorKind::kInvalidArgument,
          "sparse attention: sink has {} values; expected one for each of {} heads",
          data.sink.size(), p.heads);
  return data;
}

}  // namespace tilewright::cli
