#include "sim/driver/objects/module.h"

#include "sim/driver/abi/functions.h"

#include <algorithm>

namespace tilewright::sim {

const std::shared_ptr<FunctionObject>& ModuleObject::function(std::string_view name) const {
  const auto found = functions.find(name);
  expect(found != functions.end(), CUresult::kNotFound);
  return found->second;
}

namespace abi {

namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

void load(CUmodule* out, const void* image, const std::string& name, const JitOptions& options,
          bool has_log) {
  Context& context = usable_context();
  expect(out != nullptr);
  const bool has_time = Driver::get().options().has_time;
  ModuleText code = {ptx_of(image, context.device.model), name,
                     has_time ? cubin_of(image, context.device.model) : ""};
  // Who gives no buffer for the log would learn nothing: then it goes to standard error.
  char text[4096];
  void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
  constexpr CUjit_option kKeys[] = {CUjit_option::kErrorLogBuffer,
                                    CUjit_option::kErrorLogBufferSizeBytes};
  const JitOptions own(2, kKeys, values);
  const JitOptions& log = has_log ? options : own;
  const CUresult result = answer([&] {
    const std::shared_ptr<ModuleObject> module = load_module(context, std::move(code), log);
    for (const auto& [key, function] : module->functions) {
      Driver::get().functions.add(function);
    }
    *out = Driver::get().modules.add(module);
  });
  if (!has_log && text[0] != '\0') say(text);
  options.finish();
  expect(result == CUresult::kSuccess, result);
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned num_options,
                            CUjit_option* keys, void** values) {
  return call([&] {
    const JitOptions options(num_options, keys, values);
    load(out, image, next_module_name(), options, options.has_error_log());
  });
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return call([&] { load(out, image, next_module_name(), {}, false); });
}

CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return cuModuleLoadData(out, image);
}

CUresult cuModuleLoad(CUmodule* out, const char* path) {
  return call([&] {
    const std::string bytes = read_image_file(path);
    load(out, bytes.c_str(), std::string(base_name(path)), {}, false);
  });
}

CUresult cuModuleUnload(CUmodule handle) {
  return call([&] {
    const std::shared_ptr<ModuleObject> module = Driver::get().modules.find(handle);
    expect(module->library == nullptr);  // those go with their library
    Driver::get().functions.take_if(
        [&](const FunctionObject& function) { return function.module == module.get(); });
    Driver::get().modules.take(handle);
    module->context->report_fault();
  });
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  return call([&] {
    expect(out != nullptr && name != nullptr);
    const std::shared_ptr<ModuleObject> module = Driver::get().modules.find(handle);
    *out = Registry<CUfunction, FunctionObject>::handle_of(module->function(name).get());
  });
}

CUresult cuModuleGetFunctionCount(unsigned* out, CUmodule handle) {
  return call([&] {
    expect(out != nullptr);
    *out = static_cast<unsigned>(Driver::get().modules.find(handle)->functions.size());
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned count, CUmodule handle) {
  return call([&] {
    expect(out != nullptr);
    for (const auto& [name, function] : Driver::get().modules.find(handle)->functions) {
      if (count-- == 0) return;
      *out++ = Registry<CUfunction, FunctionObject>::handle_of(function.get());
    }
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
  return call([&] {
    expect(name != nullptr);
    const std::shared_ptr<ModuleObject> module = Driver::get().modules.find(handle);
    const auto found = module->variables.find(name);
    expect(found != module->variables.end(), CUresult::kNotFound);
    if (address != nullptr) *address = found->second.address;
    if (bytes != nullptr) *bytes = found->second.size_bytes;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* out) {
  return call([&] {
    expect(out != nullptr);
    *out = CUmoduleLoadingMode::kEagerLoading;
  });
}

}  // namespace abi
}  // namespace tilewright::sim
