#include "verify/attention/data.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "formats/minifloat.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::cli {

namespace {

template <class T>
T read_elem(const std::byte* bytes, std::size_t index) {
  T value;  // a file aligns nothing
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

double elem_as_double(const std::byte* bytes, DType dtype, std::size_t i) {
  switch (dtype) {
    case DType::kF64:
      return read_elem<double>(bytes, i);
    case DType::kF32:
      return read_elem<float>(bytes, i);
    case DType::kF16:
      return decode(kFp16, read_elem<std::uint16_t>(bytes, i));
    default:
      return decode(kBf16, read_elem<std::uint16_t>(bytes, i));
  }
}

std::span<const std::byte> float_bytes(const ConstTensorView& tensor, const std::string& name) {
  const DType from = tensor.dtype;
  require(from == DType::kF64 || from == DType::kF32 || from == DType::kF16 || from == DType::kBF16,
          ErrorKind::kUnsupported, "attention: {} has type {}; expected F16, BF16, F32 or F64",
          name, to_string(from));
  return contiguous_bytes(tensor, name);
}

std::uint64_t mix_bits(std::uint64_t z) {  // splitmix64
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Two values of N(0,1) by Box and Muller.
std::array<float, 2> normal_pair(std::uint64_t bits) {
  const float u = (static_cast<float>(bits >> 40) + 1) * 0x1p-24f;
  const float angle = static_cast<float>(bits & 0xffffff) * 0x1p-24f * 6.2831853f;
  const float radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Nearest even, of a finite value.
std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

const FormatSpec& attention_format(DType dtype) {
  return dtype == DType::kF16 ? kFp16 : kBf16;
}

std::vector<std::uint16_t> to_codes(const ConstTensorView& tensor, DType dtype,
                                    const std::string& name) {
  const DType from = tensor.dtype;
  const std::span<const std::byte> bytes = float_bytes(tensor, name);
  const std::size_t count = bytes.size() * 8 / static_cast<std::size_t>(bits_per_elem(from));
  std::vector<std::uint16_t> codes(count);
  if (from == dtype) {
    std::memcpy(codes.data(), bytes.data(), bytes.size());
    return codes;
  }
  const FormatSpec& format = attention_format(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<std::uint16_t>(encode(format, elem_as_double(bytes.data(), from, i)));
  }
  return codes;
}

std::vector<float> to_floats(const ConstTensorView& tensor, const std::string& name) {
  const std::span<const std::byte> bytes = float_bytes(tensor, name);
  std::vector<float> values(bytes.size() * 8 /
                            static_cast<std::size_t>(bits_per_elem(tensor.dtype)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(elem_as_double(bytes.data(), tensor.dtype, i));
  return values;
}

AttentionSequence find_sequence(const AttentionData& data, std::int64_t batch) {
  const AttentionProblem& p = data.problem;
  if (!p.is_packed) return {0, p.q_len, 0, p.kv_len};
  const auto i = static_cast<std::size_t>(batch);
  return {data.cu_q[i], data.cu_q[i + 1] - data.cu_q[i], data.cu_kv[i],
          data.cu_kv[i + 1] - data.cu_kv[i]};
}

double visible_flops(const AttentionData& data) {
  const AttentionProblem& p = data.problem;
  if (!p.is_packed) return count_work(p).flops;
  AttentionProblem one = p;
  one.is_packed = false;
  one.batch = 1;
  double flops = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const AttentionSequence sequence = find_sequence(data, b);
    one.q_len = sequence.q_len;
    one.kv_len = sequence.kv_len;
    flops += count_work(one).flops;
  }
  return flops;
}

AttentionExtents read_layout(const std::string& layout, std::span<const std::int64_t> shape,
                             const std::string& name) {
  AttentionExtents out = {1, 1, 1, 1, {}};
  require(
      layout.size() == shape.size() && layout.ends_with('d'), ErrorKind::kInvalidArgument,
      "attention: {} has shape {}, which --layout {} does not describe: one letter of b (batch), "
      "n (rows), h (heads) for each dimension and d for the last",
      name, shape_text(shape), layout);
  std::int64_t stride = 1, *const extents[] = {&out.batch, &out.rows, &out.heads, &out.head_dim};
  std::int64_t unused = 0, *const strides[] = {&out.strides.batch, &out.strides.row,
                                               &out.strides.head, &unused};
  std::string seen;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::size_t letter = std::string_view("bnhd").find(layout[i]);
    require(letter != std::string_view::npos && seen.find(layout[i]) == std::string::npos,
            ErrorKind::kInvalidArgument,
            "attention: --layout {}; expected letters of b, n, h and d, each once, d last", layout);
    seen += layout[i];
    *extents[letter] = shape[i];
    *strides[letter] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  for (std::int64_t* const s : {&out.strides.batch, &out.strides.row, &out.strides.head})
    if (*s == 0) *s = stride;  // of one element: never used
  return out;
}

namespace {

// Those of the same tensor with rows of another width; all strides count whole rows.
Strides with_row(const Strides& s, std::int64_t from, std::int64_t to) {
  const auto widen = [&](std::int64_t stride) {
    return stride / std::max<std::int64_t>(from, 1) * to;
  };
  return {widen(s.batch), widen(s.row), widen(s.head)};
}

}  // namespace

std::int64_t value_dim(const AttentionProblem& p) noexcept {
  return p.value_dim == 0 ? p.head_dim : p.value_dim;
}

void set_extents(AttentionProblem& p, const AttentionExtents& q, const AttentionExtents& k,
                 const AttentionExtents& v) {
  require(k.batch == v.batch && k.rows == v.rows && k.heads == v.heads, ErrorKind::kInvalidArgument,
          "attention: k is [batch {}, rows {}, heads {}], v [{}, {}, {}]; expected the same",
          k.batch, k.rows, k.heads, v.batch, v.rows, v.heads);
  require(v.head_dim > 0, ErrorKind::kInvalidArgument,
          "attention: rows of v have no elements; expected a multiple of 8");
  require(q.batch == k.batch && q.head_dim == k.head_dim, ErrorKind::kInvalidArgument,
          "attention: q has batch {} and head_dim {}, k {} and {}; expected the same", q.batch,
          q.head_dim, k.batch, k.head_dim);
  p.batch = q.batch;
  p.heads = q.heads;
  p.kv_heads = k.heads;
  p.q_len = q.rows;
  p.kv_len = k.rows;
  p.head_dim = q.head_dim;
  p.value_dim = v.head_dim;
  p.q_strides = q.strides;
  p.out_strides = with_row(q.strides, q.head_dim, v.head_dim);
  p.k_strides = k.strides;
  p.v_strides = v.strides;
}

std::vector<std::uint16_t> draw_values(Drawn from, std::int64_t count, std::uint64_t seed,
                                       DType dtype) {
  constexpr std::uint64_t kOutliers = 0x6f75746c69657273;  // seeds of their own
  const auto rare = [&](std::int64_t i) {
    const std::uint64_t bits = mix_bits(mix_bits(seed ^ kOutliers) ^ static_cast<std::uint64_t>(i));
    return bits % 1000 == 0 ? 10 * normal_pair(mix_bits(bits))[0] : 0.0f;
  };
  std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
  ThreadPool pool;
  pool.parallel_for(0, (count + 1) / 2, 1 << 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::array<float, 2> values =
          normal_pair(mix_bits(mix_bits(seed) ^ static_cast<std::uint64_t>(i)));
      for (std::int64_t c = 0; c < 2 && 2 * i + c < count; ++c) {
        float value = values[static_cast<std::size_t>(c)];
        if (from == Drawn::kOutlier) value += rare(2 * i + c);
        codes[static_cast<std::size_t>(2 * i + c)] =
            dtype == DType::kBF16 ? to_bf16(value)
                                  : static_cast<std::uint16_t>(encode(kFp16, value));
      }
    }
  });
  return codes;
}

std::int64_t span_elems(std::int64_t batch, std::int64_t rows, std::int64_t heads,
                        std::int64_t head_dim, const Strides& s) {
  if (batch * rows * heads * head_dim == 0) return 0;
  return (batch - 1) * s.batch + (rows - 1) * s.row + (heads - 1) * s.head + head_dim;
}

}  // namespace tilewright::cli
