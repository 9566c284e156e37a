// Two operators in a CUDA graph: captured once, launched for each new input, timed by events.
#include "example.h"

#include <tilewright/graph.h>
#include <tilewright/hyper_connection.h>
#include <tilewright/linear.h>

constexpr std::int64_t kOut = 256, kIn = 512;

int main() try {
  const tw::Device device = tw::Device::open();
  const std::vector<float> w = draw(kOut * kIn, 1, 0.25f);
  const std::vector<std::byte> codes = tw::encode(tw::DType::kBF16, w);
  const tw::LinearWeight weight = tw::LinearWeight::prepare(
      device, {.format = tw::NumberFormat::kBf16,
               .values = tw::contiguous_view(codes.data(), tw::DType::kBF16, {kOut, kIn})});
  const tw::RmsNorm norm(device, {.rows = 1, .cols = kIn, .has_weight = false});
  const tw::Linear linear(weight, {.m = 1, .out_dtype = tw::DType::kF32});

  tw::Buffer x = poisoned(device, kIn * 2);
  const tw::Buffer normed = poisoned(device, kIn * 2), out = poisoned(device, kOut * 4);
  const tw::Buffer workspace = poisoned(device, linear.plan().workspace_bytes);
  const tw::Stream stream(device);
  const tw::Graph graph = tw::Graph::capture(stream, [&] {
    norm.run({.x = x.data(), .out = normed.data(), .stream = stream.handle()});
    linear.run({.x = normed.data(),
                .out = out.data(),
                .workspace = workspace.data(),
                .stream = stream.handle()});
  });

  // The graph has addresses, not values: what is at x when it is launched counts.
  const tw::StreamTimer timer(device);
  for (unsigned step = 0; step < 3; ++step) {
    const std::vector<float> input = draw(kIn, 2 + step);
    x.upload(tw::encode(tw::DType::kBF16, input));
    const double us = timer.time_us(stream, [&] { graph.launch(stream); });
    if (!device.is_simulated()) std::printf("step %u: %.1f us\n", step, us);

    double squares = 0;
    for (const float value : input) squares += double{value} * value;
    const double scale = 1 / std::sqrt(squares / kIn);
    std::vector<double> expected(kOut);
    for (std::int64_t i = 0; i < kOut * kIn; ++i)
      expected[i / kIn] += double{w[i]} * input[i % kIn] * scale;
    // x is rounded to bf16, by 2^-8 at most: 512 of these errors times weights of up to 1/4 have a
    // standard deviation of 0.0074. 0.05 is more than six of them.
    if (verdict(linear.plan().kernel, device, out.to_vector<float>(), expected, 0.05) != 0)
      return 1;
  }
  return 0;
} catch (const tw::Error& error) {
  return failure(error);
}
