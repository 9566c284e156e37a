// Libraries: code without a context, loaded into each context where one of its kernels is used.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/module.h"

namespace tilewright::sim {

std::shared_ptr<ModuleObject> Library::module_in(Context& context) {
  const std::lock_guard lock(mutex);
  std::shared_ptr<ModuleObject>& module = modules[&context];
  if (module != nullptr) return module;
  module = load_module(context, {ptx, name, cubin}, {});
  module->library = this;
  for (const auto& [key, function] : module->functions) {
    Driver::get().functions.add(function);
    const auto kernel = kernels.find(key);
    if (kernel == kernels.end()) continue;
    for (const auto& [attribute, value] : kernel->second->attributes) {
      set_attribute(*function, attribute, value);
    }
  }
  Driver::get().modules.add(module);
  return module;
}

std::shared_ptr<FunctionObject> function_of(const KernelObject& kernel, Context& context) {
  return kernel.library->module_in(context)->function(kernel.name);
}

std::shared_ptr<FunctionObject> find_function(abi::CUfunction handle) {
  Driver& driver = Driver::get();
  if (auto function = driver.functions.look_up(handle)) return function;
  const auto kernel = driver.kernels.look_up(reinterpret_cast<abi::CUkernel>(handle));
  expect(kernel != nullptr, CUresult::kInvalidHandle);
  return function_of(*kernel, current_context());
}

namespace abi {

namespace {

/// Where a library is loaded by default: the current context, else the first device's.
Context& some_context() {
  const auto& stack = context_stack();
  if (!stack.empty() && stack.back()->is_active) return *stack.back();
  return *Driver::get().device(0).primary;
}

void load(CUlibrary* out, const void* image, std::string name, const JitOptions& options) {
  expect(out != nullptr);
  Context& context = some_context();
  const auto library = std::make_shared<Library>();
  library->ptx = ptx_of(image, context.device.model);
  if (Driver::get().options().has_time) library->cubin = cubin_of(image, context.device.model);
  library->name = std::move(name);
  const std::shared_ptr<ModuleObject> module =
      load_module(context, {library->ptx, library->name, library->cubin}, options);
  for (const auto& [key, function] : module->functions) {
    const auto kernel = std::make_shared<KernelObject>();
    kernel->library = library.get();
    kernel->name = key;
    library->kernels[key] = kernel;
    Driver::get().kernels.add(kernel);
  }
  *out = Driver::get().libraries.add(library);
  if (!context.is_active) return;  // it was only looked at
  module->library = library.get();
  for (const auto& [key, function] : module->functions) Driver::get().functions.add(function);
  Driver::get().modules.add(module);
  library->modules[&context] = module;
}

std::shared_ptr<KernelObject> find_kernel(CUkernel handle) {
  return Driver::get().kernels.find(handle);
}

const VariableInfo& find_variable(CUlibrary handle, const char* name) {
  expect(name != nullptr);
  const auto module = Driver::get().libraries.find(handle)->module_in(usable_context());
  const auto found = module->variables.find(name);
  expect(found != module->variables.end(), CUresult::kNotFound);
  return found->second;
}

template <class Handle, class T>
Handle handle_of(const std::shared_ptr<T>& object) {
  return Registry<Handle, T>::handle_of(object.get());
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* keys, void** values,
                           unsigned num_options, CUlibraryOption*, void**, unsigned) {
  return call([&] {
    const JitOptions options(num_options, keys, values);
    load(out, image, next_module_name(), options);
    options.finish();
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* keys, void** values,
                               unsigned num_options, CUlibraryOption*, void**, unsigned) {
  return call([&] {
    const JitOptions options(num_options, keys, values);
    const std::string bytes = read_image_file(path);
    const std::string name = path;
    load(out, bytes.c_str(), name.substr(name.find_last_of('/') + 1), options);
    options.finish();
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  return call([&] {
    Driver& driver = Driver::get();
    const std::shared_ptr<Library> library = driver.libraries.take(handle);
    driver.kernels.take_if([&](const KernelObject& k) { return k.library == library.get(); });
    driver.functions.take_if(
        [&](const FunctionObject& f) { return f.module->library == library.get(); });
    driver.modules.take_if([&](const ModuleObject& m) { return m.library == library.get(); });
  });
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  return call([&] {
    expect(out != nullptr && name != nullptr);
    const std::shared_ptr<Library> library = Driver::get().libraries.find(handle);
    const auto found = library->kernels.find(std::string_view(name));
    expect(found != library->kernels.end(), CUresult::kNotFound);
    *out = handle_of<CUkernel>(found->second);
  });
}

CUresult cuLibraryGetKernelCount(unsigned* out, CUlibrary handle) {
  return call([&] {
    expect(out != nullptr);
    *out = static_cast<unsigned>(Driver::get().libraries.find(handle)->kernels.size());
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned count, CUlibrary handle) {
  return call([&] {
    expect(out != nullptr);
    for (const auto& [name, kernel] : Driver::get().libraries.find(handle)->kernels) {
      if (count-- == 0) return;
      *out++ = handle_of<CUkernel>(kernel);
    }
  });
}

CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  return call([&] {
    expect(out != nullptr);
    const std::shared_ptr<Library> library = Driver::get().libraries.find(handle);
    *out = handle_of<CUmodule>(library->module_in(usable_context()));
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                            const char* name) {
  return call([&] {
    const VariableInfo& variable = find_variable(handle, name);
    if (address != nullptr) *address = variable.address;
    if (bytes != nullptr) *bytes = variable.size_bytes;
  });
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                             const char* name) {
  return cuLibraryGetGlobal(address, bytes, handle, name);
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  return call([&] {
    expect(out != nullptr);
    *out = handle_of<CUfunction>(function_of(*find_kernel(handle), usable_context()));
  });
}

CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  return call([&] {
    expect(out != nullptr);
    *out = Registry<CUlibrary, Library>::handle_of(find_kernel(handle)->library);
  });
}

CUresult cuKernelGetName(const char** out, CUkernel handle) {
  return call([&] {
    expect(out != nullptr);
    *out = find_kernel(handle)->name.c_str();
  });
}

CUresult cuKernelGetAttribute(int* out, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    Context& context = *Driver::get().device(ordinal).primary;
    *out = get_attribute(*function_of(*find_kernel(handle), context), attribute);
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice ordinal) {
  return call([&] {
    const std::shared_ptr<KernelObject> kernel = find_kernel(handle);
    Context& context = *Driver::get().device(ordinal).primary;
    set_attribute(*function_of(*kernel, context), attribute, value);
    kernel->attributes[attribute] = value;
  });
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice ordinal) {
  return call([&] {
    find_kernel(handle);
    Driver::get().device(ordinal);
    expect(config >= CUfunc_cache::kNone && config <= CUfunc_cache::kEqual);
  });
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* bytes) {
  return call([&] {
    expect(offset != nullptr);
    const std::shared_ptr<FunctionObject> function =
        function_of(*find_kernel(handle), current_context());
    expect(index < function->info.params.size());
    *offset = function->info.params[index].offset_bytes;
    if (bytes != nullptr) *bytes = function->info.params[index].size_bytes;
  });
}

}  // namespace abi
}  // namespace tilewright::sim
