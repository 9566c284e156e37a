// The linker and other small things. What is linked here is one PTX text, which is handed back as
// it came: it is compiled when it is loaded.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/module.h"

#include <cstring>

namespace tilewright::sim {

struct LinkState {
  std::string ptx;  ///< NUL-terminated, as modules are loaded
};

namespace abi {

namespace {

void add(LinkState& link, CUjitInputType type, std::string text) {
  const bool is_text = type == CUjitInputType::kPtx || type == CUjitInputType::kFatbinary;
  expect(is_text, CUresult::kNoBinaryForGpu);
  if (!link.ptx.empty()) {
    say("cuLink: several inputs; the simulator does not link PTX. Make one module of them");
    refuse(CUresult::kNotSupported);
  }
  link.ptx = std::move(text);
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned num_options, CUjit_option* keys, void** values,
                         CUlinkState* out) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr);
    JitOptions(num_options, keys, values).finish();
    *out = Driver::get().links.add(std::make_shared<LinkState>());
  });
}

CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                          const char*, unsigned, CUjit_option*, void**) {
  return call_in_usable_context([&](Context& context) {
    const std::shared_ptr<LinkState> link = Driver::get().links.find(handle);
    expect(data != nullptr && bytes > 0);
    const std::string copy(static_cast<const char*>(data), bytes);
    add(*link, type, ptx_of(copy.c_str(), context.device.model));
  });
}

CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned,
                          CUjit_option*, void**) {
  return call_in_usable_context([&](Context& context) {
    const std::shared_ptr<LinkState> link = Driver::get().links.find(handle);
    const std::string bytes = read_image_file(path);
    add(*link, type, ptx_of(bytes.c_str(), context.device.model));
  });
}

CUresult cuLinkComplete(CUlinkState handle, void** out, size_t* bytes) {
  return call([&] {
    const std::shared_ptr<LinkState> link = Driver::get().links.find(handle);
    expect(out != nullptr);
    *out = link->ptx.data();
    if (bytes != nullptr) *bytes = link->ptx.size() + 1;
  });
}

CUresult cuLinkDestroy(CUlinkState handle) {
  return call([&] { Driver::get().links.take(handle); });
}

// There is no profiler: it starts and stops without effect.

CUresult cuProfilerStart() {
  return call_in_context([](Context&) {});
}

CUresult cuProfilerStop() {
  return call_in_context([](Context&) {});
}

}  // namespace abi
}  // namespace tilewright::sim
