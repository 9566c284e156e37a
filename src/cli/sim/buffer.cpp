#include "cli/sim/buffer.h"

#include "base/npy.h"
#include "base/safetensors.h"
#include "base/safetensors_writer.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

std::uint64_t get_elem(std::span<const std::byte> bytes, DType dtype, std::int64_t index) {
  const auto bits = static_cast<std::uint64_t>(bits_per_elem(dtype));
  const std::uint64_t begin = static_cast<std::uint64_t>(index) * bits;
  std::uint64_t value = 0;
  const std::size_t num_bytes = (begin % 8 + bits + 7) / 8;
  std::memcpy(&value, bytes.data() + begin / 8, num_bytes);
  value >>= begin % 8;
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

void set_elem(std::span<std::byte> bytes, DType dtype, std::int64_t index, std::uint64_t value) {
  const auto bits = static_cast<std::uint64_t>(bits_per_elem(dtype));
  const std::uint64_t begin = static_cast<std::uint64_t>(index) * bits;
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::size_t num_bytes = (begin % 8 + bits + 7) / 8;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + begin / 8, num_bytes);
  word = (word & ~(mask << begin % 8)) | ((value & mask) << begin % 8);
  std::memcpy(bytes.data() + begin / 8, &word, num_bytes);
}

/// Numbers that are the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// Source   splitmix64, public domain, by Sebastiano Vigna
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

double number_or(const JsonNode& node, std::string_view key, double value) {
  const auto found = node.find(key);
  return found ? found->as_double() : value;
}

std::vector<std::int64_t> parse_shape_of(const JsonNode& node) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (node.value().is_number()) return {node.as_int(0, kMost)};
  std::vector<std::int64_t> shape;
  for (const auto& elem : node.elems()) shape.push_back(elem.as_int(0, kMost));
  return shape;
}

void fill_by_rule(HostTensor& tensor, const std::string& rule, const JsonNode& node) {
  const auto seed = node.find("seed");
  Random random(seed ? static_cast<std::uint64_t>(seed->as_int(0)) : 1);
  const auto fill = [&](const auto& value_of) {
    for (std::int64_t i = 0; i < tensor.num_elems(); ++i) {
      set_elem(tensor.bytes(), tensor.dtype(), i, encode_elem(tensor.dtype(), value_of(i)));
    }
  };
  if (rule == "iota") {
    const double start = number_or(node, "start", 0), step = number_or(node, "step", 1);
    fill([&](std::int64_t i) { return start + step * static_cast<double>(i); });
  } else if (rule == "normal") {
    const double mean = number_or(node, "mean", 0), deviation = number_or(node, "std", 1);
    fill([&](std::int64_t) { return mean + deviation * random.normal(); });
  } else if (rule == "uniform") {
    const double low = number_or(node, "min", 0), high = number_or(node, "max", 1);
    fill([&](std::int64_t) { return low + (high - low) * random.uniform(); });
  } else if (rule == "random_bits") {
    for (std::byte& byte : tensor.bytes()) byte = static_cast<std::byte>(random.bits() >> 56);
  } else if (rule != "zeros" && rule != "poison") {
    node.at("fill").fail(
        "there is no fill \"{}\"; expected a number, zeros, iota, normal, uniform, random_bits or "
        "poison",
        rule.substr(0, 40));
  }
}

DType dtype_of(const JsonNode& node) {
  const JsonNode dtype = node.at("dtype");
  return parse_dtype(dtype.as_string(), dtype);
}

HostTensor generated(const JsonNode& node) {
  const JsonNode fill = node.at("fill");
  HostTensor tensor(dtype_of(node), parse_shape_of(node.at("shape")));
  if (!fill.value().is_number()) {
    fill_by_rule(tensor, fill.as_string(), node);
    return tensor;
  }
  const std::uint64_t bits = encode_elem(tensor.dtype(), fill.as_double());
  for (std::int64_t i = 0; i < tensor.num_elems(); ++i) {
    set_elem(tensor.bytes(), tensor.dtype(), i, bits);
  }
  return tensor;
}

/// From "npy", "safetensors" with "tensor", "values" or "fill".
HostTensor contents(const JsonNode& node) {
  if (const auto path = node.find("npy")) return read_npy(path->as_string());
  if (const auto path = node.find("safetensors")) {
    return HostTensor(SafetensorsFile(path->as_string()).tensor(node.at("tensor").as_string()));
  }
  if (const auto values = node.find("values")) {
    const auto elems = values->elems();
    const DType dtype = dtype_of(node);
    HostTensor tensor(dtype, {static_cast<std::int64_t>(elems.size())});
    for (std::size_t i = 0; i < elems.size(); ++i) {
      set_elem(tensor.bytes(), dtype, static_cast<std::int64_t>(i),
               encode_elem(dtype, elems[i].as_double()));
    }
    return tensor;
  }
  if (!node.find("fill")) {
    node.fail("expected what the buffer holds: one of fill, values, npy, safetensors");
  }
  return generated(node);
}

/// The types that numpy has not become unsigned integers of their width.
ConstTensorView for_numpy(const ConstTensorView& view) {
  ConstTensorView out = view;
  switch (view.dtype) {
    case DType::kBF16:
      out.dtype = DType::kU16;
      return out;
    case DType::kF8_E4M3:
    case DType::kF8_E5M2:
    case DType::kF8_E8M0:
    case DType::kF8_E4M3FNUZ:
    case DType::kF8_E5M2FNUZ:
      out.dtype = DType::kU8;
      return out;
    case DType::kF4:
    case DType::kF6_E2M3:
    case DType::kF6_E3M2: {
      const std::int64_t bytes = checked_num_bytes(view.dtype, view.shape, "output");
      return contiguous_view(view.data, DType::kU8, {bytes});
    }
    default:
      return out;
  }
}

std::string index_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::string out;
  for (std::size_t i = shape.size(); i-- > 0;) {
    out = fmt::format("{}{}{}", index % shape[i], out.empty() ? "" : ", ", out);
    index /= shape[i];
  }
  return "[" + out + "]";
}

bool is_close(double actual, double expected, const Expectation& how) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return true;
  if (std::isinf(expected)) return false;  // whatever the tolerance
  return std::abs(actual - expected) <= how.abs + how.rel * std::abs(expected);
}

}  // namespace

BufferSpec parse_buffer(const std::string& name, const JsonNode& node) {
  BufferSpec buffer;
  buffer.name = name;
  buffer.data = contents(node);
  const auto fill = node.find("fill");
  buffer.is_poison = fill && fill->value().is_string() && fill->as_string() == "poison";
  if (const auto output = node.find("output")) buffer.output = output->as_string();
  const auto expect = node.find("expect");
  if (!expect) return buffer;
  buffer.expect.emplace();
  buffer.expect->values = contents(*expect);
  buffer.expect->abs = number_or(*expect, "abs", 0);
  buffer.expect->rel = number_or(*expect, "rel", 0);
  if (buffer.expect->values.num_elems() != buffer.data.num_elems()) {
    expect->fail("expected {} elements as the buffer has, found {}", buffer.data.num_elems(),
                 buffer.expect->values.num_elems());
  }
  return buffer;
}

Difference compare(const ConstTensorView& actual, const Expectation& expected) {
  const auto actual_bytes = contiguous_bytes(actual, "buffer");
  Difference out;
  out.num_elems = static_cast<std::uint64_t>(expected.values.num_elems());
  for (std::int64_t i = 0; i < expected.values.num_elems(); ++i) {
    const double x = decode_elem(actual.dtype, get_elem(actual_bytes, actual.dtype, i));
    const DType dtype = expected.values.dtype();
    const double y = decode_elem(dtype, get_elem(expected.values.bytes(), dtype, i));
    if (std::isfinite(x - y)) out.max_abs = std::max(out.max_abs, std::abs(x - y));
    if (is_close(x, y, expected)) continue;
    if (out.num_wrong++ == 0) {
      out.first = fmt::format("{} is {:.9g}, expected {:.9g}", index_text(i, actual.shape), x, y);
    }
  }
  return out;
}

void write_buffer(const std::string& path, const std::string& name, const ConstTensorView& view) {
  if (path.ends_with(".safetensors")) return write_safetensors(path, {{name, view}});
  write_npy(path, for_numpy(view));
}

}  // namespace tilewright::cli
