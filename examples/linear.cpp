// A linear layer with NVFP4 weights: quantise, prepare once, run; checked against plain loops over
// the quantised weights.
#include "example.h"

#include <tilewright/linear.h>
#include <tilewright/quantize.h>

constexpr std::int64_t kRows = 5, kOut = 256, kIn = 512;

int main() try {
  // A checkpoint has codes and scales already; here they are made of fp32 weights, on the host.
  const std::vector<float> weights = draw(kOut * kIn, 1);
  const tw::QuantizeProblem problem = {
      .format = "nvfp4", .dtype = tw::DType::kF32, .rows = kOut, .cols = kIn};
  const tw::QuantizePlan sizes = tw::plan_quantize_on_host(problem);
  std::vector<std::byte> codes(sizes.code_bytes), scales(sizes.scale_bytes);
  float global_scale = 0;
  tw::quantize_on_host(problem, {.in = weights.data(),
                                 .codes = codes.data(),
                                 .scales = scales.data(),
                                 .tensor_scale = &global_scale});

  const tw::Device device = tw::Device::open();
  const tw::LinearWeight weight = tw::LinearWeight::prepare(
      device, {.format = tw::NumberFormat::kNvfp4,
               .values = tw::contiguous_view(codes.data(), tw::DType::kU8, {kOut, kIn / 2}),
               .scales = tw::contiguous_view(scales.data(), tw::DType::kF8_E4M3, {kOut, kIn / 16}),
               .global_scale = global_scale});
  const tw::Linear linear(weight, {.m = kRows, .out_dtype = tw::DType::kF32});
  const std::vector<float> x = draw(kRows * kIn, 2);
  const tw::Buffer device_x = upload_bf16(device, x);
  const tw::Buffer out = poisoned(device, kRows * kOut * sizeof(float));
  const tw::Buffer workspace = poisoned(device, linear.plan().workspace_bytes);
  linear.run({.x = device_x.data(), .out = out.data(), .workspace = workspace.data()});

  const std::vector<float> values = tw::decode(tw::DType::kF4, codes),
                           block_scales = tw::decode(tw::DType::kF8_E4M3, scales);
  std::vector<double> expected(kRows * kOut);
  for (std::int64_t at = 0; at < kRows * kOut; ++at) {
    const float *row = &x[at / kOut * kIn], *codes_of_row = &values[at % kOut * kIn];
    const float* scales_of_row = &block_scales[at % kOut * kIn / 16];
    for (std::int64_t c = 0; c < kIn; ++c) {
      expected[at] += double{row[c]} * codes_of_row[c] * scales_of_row[c / 16] * global_scale;
    }
  }
  // Sums of 512 products of about 1/3 in fp32; the weights are exact in bf16 but for their scale.
  return verdict(linear.plan().kernel, device, out.to_vector<float>(), expected, 0.01);
} catch (const tw::Error& error) {
  return failure(error);
}
