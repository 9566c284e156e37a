// Operands and results of DeepSeek-V4's operators from a trained model, as another implementation
// computed them: tests/golden/dsv4/operands.safetensors, made by tools/cut_model_reference.py.
#pragma once

#include "base/safetensors.h"
#include "base/tensor.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::reference {

/// 200 tokens, layers 0 (window), 1 (CSA), 2 (HCA); attention of 4 positions; caches in FP8.
class Dsv4Operands {
 public:
  using Doubles = std::vector<double>;
  using Ints = std::vector<int32_t>;

  Dsv4Operands() : file_(std::string(TILEWRIGHT_TEST_DATA) + "/dsv4/operands.safetensors") {}

  static constexpr int64_t kTokens = 200, kHeads = 8, kDim = 512, kWindow = 128, kTopk = 32;

  bool has(int layer, const std::string& name) const { return file_.contains(full(layer, name)); }
  Doubles doubles(int layer, const std::string& name) const { return read(full(layer, name)); }
  Ints ints(int layer, const std::string& name) const {
    const Doubles values = doubles(layer, name);
    return {values.begin(), values.end()};
  }
  Ints positions() const {
    const Doubles values = read("positions");
    return {values.begin(), values.end()};
  }
  Ints input_ids() const {
    const Doubles values = read("input_ids");
    return {values.begin(), values.end()};
  }

  /// The rows of a cache, "kv" or "comp", as attention reads them: [rows, 512].
  Doubles rows(int layer, const std::string& name) const {
    const auto codes = file_.tensor(full(layer, name + "_fp8"));
    const auto scales = file_.tensor(full(layer, name + "_scale"));
    const int64_t rows = codes.shape[0];
    QuantizedTensor tensor;
    tensor.rows = tensor.padded_rows = rows;
    tensor.cols = tensor.padded_cols = 448;
    const auto* code = static_cast<const uint8_t*>(codes.data);
    const auto* scale = static_cast<const uint8_t*>(scales.data);
    tensor.codes.assign(code, code + rows * 448);
    tensor.scales.assign(scale, scale + rows * 7);
    const auto plain = dequantize(kFp8Block64Pow2, tensor);
    const Doubles rotated = doubles(layer, name + "_rope");
    Doubles result;
    for (int64_t r = 0; r < rows; ++r) {
      result.insert(result.end(), plain.begin() + r * 448, plain.begin() + (r + 1) * 448);
      result.insert(result.end(), rotated.begin() + r * 64, rotated.begin() + (r + 1) * 64);
    }
    return result;
  }

 private:
  static std::string full(int layer, const std::string& name) {
    return "layers." + std::to_string(layer) + "." + name;
  }

  template <class T>
  static Doubles widen(const HostTensor& tensor) {
    const auto elems = tensor.elems<T>();
    return {elems.begin(), elems.end()};
  }

  Doubles read(const std::string& name) const {
    const HostTensor tensor(file_.tensor(name));
    switch (tensor.dtype()) {
      case DType::kF32:
        return widen<float>(tensor);
      case DType::kI64:
        return widen<int64_t>(tensor);
      case DType::kI32:
        return widen<int32_t>(tensor);
      case DType::kI16:
        return widen<int16_t>(tensor);
      case DType::kU8:
        return widen<uint8_t>(tensor);
      default:
        break;
    }
    Doubles values;
    for (const uint16_t code : tensor.elems<uint16_t>()) values.push_back(decode(kBf16, code));
    return values;
  }

  SafetensorsFile file_;
};

/// Largest difference; equal infinities differ by nothing.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] != b[i]) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace tilewright::reference
