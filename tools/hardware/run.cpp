// Running a case on a device.

#include "base/error.h"
#include "device/kernel_registry.h"
#include "device/memory.h"
#include "device/tensor_map.h"
#include "hardware/probe.h"
#include "kernels/probe/tensor_copy_probe.h"
#include "kernels/probe/warp_probe.h"
#include "kernels/probe/wgmma_probe.h"

#include <cstring>

namespace tilewright::hardware {

namespace {

using device::Buffer;
using device::Device;
using device::Kernel;
using device::LaunchConfig;
using device::Stream;
using Words = std::vector<std::uint32_t>;

template <class T>
T* pointer(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

Words run(const Device& device, const Kernel& kernel, const WgmmaInputs& in, std::size_t results) {
  require(in.shared_image.size() * 4 <= kernels::kWgmmaProbeMaxBytes, ErrorKind::kInternal,
          "wgmma probe: an image of {} bytes; room for {}", in.shared_image.size() * 4,
          kernels::kWgmmaProbeMaxBytes);
  const Buffer image = Buffer::from(device, in.shared_image);
  const Buffer registers = Buffer::from(device, in.a_registers);
  Buffer out(device, results * 4);
  out.poison();
  const kernels::WgmmaProbeParams params = {pointer<std::uint32_t>(image),
                                            pointer<std::uint32_t>(registers),
                                            in.a_descriptor,
                                            in.b_descriptor,
                                            pointer<float>(out),
                                            static_cast<std::uint32_t>(in.shared_image.size() * 4)};
  const Stream stream(device);
  kernel.allow_dynamic_shared_bytes(kernels::kWgmmaProbeSharedBytes);
  kernel.launch(LaunchConfig{.block = {kernels::kWgmmaProbeThreads},
                             .dynamic_shared_bytes = kernels::kWgmmaProbeSharedBytes},
                params, stream);
  stream.synchronize();
  return out.to_vector<std::uint32_t>();
}

Words run(const Device& device, const Kernel& kernel, const WarpInputs& in,
          std::size_t /*results*/) {
  const Buffer registers = Buffer::from(device, in.registers),
               shared = Buffer::from(device, in.shared);
  Buffer registers_out(device, in.registers.size() * 4), shared_out(device, in.shared.size() * 4);
  registers_out.poison();
  shared_out.poison();
  const kernels::WarpProbeParams params = {
      pointer<std::uint32_t>(registers), pointer<std::uint32_t>(registers_out),
      pointer<std::uint32_t>(shared), pointer<std::uint32_t>(shared_out)};
  const Stream stream(device);
  kernel.launch(LaunchConfig{.block = {32}}, params, stream);
  stream.synchronize();
  if (in.returns_shared) return shared_out.to_vector<std::uint32_t>();
  const Words all = registers_out.to_vector<std::uint32_t>();
  Words out;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const auto first =
        all.begin() + static_cast<std::ptrdiff_t>(lane * kernels::kWarpProbeRegisters);
    out.insert(out.end(), first, first + in.result_registers);
  }
  return out;
}

device::TensorMapType type_of(int bits) {
  switch (bits) {
    case 8:
      return device::TensorMapType::kUint8;
    case 16:
      return device::TensorMapType::kUint16;
    default:
      return device::TensorMapType::kUint32;
  }
}

device::TensorMapSwizzle swizzle_of(int bytes) {
  switch (bytes) {
    case 32:
      return device::TensorMapSwizzle::k32B;
    case 64:
      return device::TensorMapSwizzle::k64B;
    case 128:
      return device::TensorMapSwizzle::k128B;
    default:
      return device::TensorMapSwizzle::kNone;
  }
}

Words run(const Device& device, const Kernel& kernel, const TensorCopyInputs& in,
          std::size_t results) {
  const Buffer matrix = Buffer::from(device, in.matrix);
  Buffer out(device, results * 4);
  out.poison();
  const auto columns = static_cast<std::uint64_t>(in.columns),
             rows = static_cast<std::uint64_t>(in.rows);
  const auto map = device::encode_tensor_map(
      device,
      {.name = "probe",
       .type = type_of(in.element_bits),
       .address = matrix.address(),
       .dims = {columns, rows},
       .strides_bytes = {columns * static_cast<std::uint64_t>(in.element_bits) / 8},
       .box = {static_cast<std::uint32_t>(in.box_columns), static_cast<std::uint32_t>(in.box_rows)},
       .swizzle = swizzle_of(in.swizzle_bytes)});
  kernels::TensorCopyProbeParams params = {};
  std::memcpy(params.tensor_map, &map, sizeof params.tensor_map);
  params.shared_out = pointer<std::uint32_t>(out);
  params.x = in.x;
  params.y = in.y;
  params.box_bytes = static_cast<std::uint32_t>(results * 4);
  const Stream stream(device);
  kernel.launch(LaunchConfig{.block = {kernels::kTensorCopyProbeThreads},
                             .dynamic_shared_bytes = kernels::kTensorCopyProbeSharedBytes},
                params, stream);
  stream.synchronize();
  return out.to_vector<std::uint32_t>();
}

}  // namespace

std::vector<std::uint32_t> run_probe(const Device& device, const ProbeCase& probe) {
  const Kernel kernel = device::load_kernel(device, probe.kernel);
  return std::visit(
      [&](const auto& inputs) { return run(device, kernel, inputs, probe.expected.size()); },
      probe.inputs);
}

}  // namespace tilewright::hardware
