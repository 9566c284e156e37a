// How weights, activations and plans read.
#include "tilewright/linear.h"

#include "base/error.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

constexpr WeightFormat kFormatsInOrder[] = {WeightFormat::kBf16, WeightFormat::kFp8,
                                            WeightFormat::kMxfp4, WeightFormat::kNvfp4};

std::string dims_text(const std::array<std::uint32_t, 3>& dims) {
  if (dims[2] != 1) return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
  return dims[1] != 1 ? fmt::format("{} x {}", dims[0], dims[1]) : fmt::format("{}", dims[0]);
}

std::string problem_text(const LinearWeightInfo& w, const LinearProblem& p) {
  std::string text = fmt::format("m {}, n {}, k {}, weight {} for {} activations, x {}, out {}",
                                 p.m, w.n, w.k, to_string(w.format), to_string(w.activations),
                                 to_string(p.x_dtype), to_string(p.out_dtype));
  if (p.has_bias) text += ", bias";
  if (p.x_stride != w.k) text += fmt::format(", x rows {} apart", p.x_stride);
  if (p.out_stride != w.n) text += fmt::format(", out rows {} apart", p.out_stride);
  return text;
}

}  // namespace

const char* to_string(WeightFormat format) noexcept {
  switch (format) {
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kFp8:
      return "fp8";
    case WeightFormat::kMxfp4:
      return "mxfp4";
    case WeightFormat::kNvfp4:
      break;
  }
  return "nvfp4";
}

WeightFormat weight_format_from_string(const std::string& name) {
  for (const WeightFormat format : kFormatsInOrder)
    if (name == to_string(format)) return format;
  fail(ErrorKind::kInvalidArgument,
       "there is no weight format \"{}\"; expected bf16, fp8, mxfp4 or nvfp4", name);
}

const char* to_string(LinearActivations activations) noexcept {
  return activations == LinearActivations::kFp8 ? "fp8" : "bf16";
}

std::string LinearPlan::to_string() const {
  std::string text = fmt::format("linear     {}\n", problem_text(weight, problem));
  text += fmt::format("kernel     {}\n", kernel);
  if (launches.empty()) text += "launches   none: x has no rows\n";
  for (const LinearLaunch& launch : launches) {
    text += fmt::format("launch     {}: grid {}, block {}", launch.entry, dims_text(launch.grid),
                        dims_text(launch.block));
    if (launch.cluster > 1) text += fmt::format(", clusters of {}", launch.cluster);
    text += fmt::format(", {} bytes of shared memory\n", launch.shared_bytes);
  }
  text += fmt::format("workspace  {} bytes\n", workspace_bytes);
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB\n", flops * 1e-9, bytes * 1e-6);
  for (const LinearCandidate& candidate : candidates) {
    if (candidate.name == kernel) continue;
    text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
