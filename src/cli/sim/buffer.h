// Buffers of a launch described in JSON: what they hold at first, and comparing what they hold
// then.
#pragma once

#include "base/json_node.h"
#include "base/tensor.h"

#include <optional>
#include <string>

namespace tilewright::cli {

/// Expected contents with tolerances: right if |x - y| <= abs + rel * |y|.
struct Expectation {
  HostTensor values;
  double abs = 0, rel = 0;
};

/// One member of "buffers".
struct BufferSpec {
  std::string name;
  HostTensor data;
  bool is_poison = false;  ///< left as the allocation is: uninitialised
  std::string output;      ///< "" or where it is written
  std::optional<Expectation> expect;
};

/// Errors   ParseError with the JSON path; those of the files it names
BufferSpec parse_buffer(const std::string& name, const JsonNode& node);

/// "F32" or "f32", "bf16", "e4m3", "s32"; `node` is where it stands.
/// Errors   ParseError
DType parse_dtype(const std::string& name, const JsonNode& node);

/// Bits of a number in this type.
std::uint64_t encode_elem(DType dtype, double value);
double decode_elem(DType dtype, std::uint64_t bits);

struct Difference {
  std::uint64_t num_wrong = 0, num_elems = 0;
  double max_abs = 0;  ///< largest |x - y| among finite ones
  std::string first;   ///< "[3, 7] is 1.5, expected 2"
};

/// Compares element by element; NaN equals NaN.
Difference compare(const ConstTensorView& actual, const Expectation& expected);

/// npy; types that numpy lacks as the raw bits in an unsigned integer. safetensors if the path says
/// so.
void write_buffer(const std::string& path, const std::string& name, const ConstTensorView& view);

}  // namespace tilewright::cli
