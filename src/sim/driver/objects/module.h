// Modules, libraries, and the functions in them.
#pragma once

#include "sim/driver/objects/state.h"

#include <span>

namespace tilewright::sim {

struct Library;

/// A module in a context.
struct ModuleObject {
  Context* context = nullptr;
  std::shared_ptr<const LoadedModule> loaded;
  Library* library = nullptr;  ///< that it was loaded for; nullptr if it stands alone
  std::map<std::string, VariableInfo, std::less<>> variables;
  std::map<std::string, std::shared_ptr<FunctionObject>, std::less<>> functions;

  /// Errors   Failure: CUDA_ERROR_NOT_FOUND
  const std::shared_ptr<FunctionObject>& function(std::string_view name) const;
};

/// A kernel in a module, with what cuFuncSetAttribute may change.
struct FunctionObject {
  ModuleObject* module = nullptr;
  KernelInfo info;
  std::uint32_t max_dynamic_shared_bytes = 0;
  int carveout = -1;
  int cluster[3] = {};  ///< required; 0 = not set
  bool is_nonportable_cluster_allowed = false;
  int cluster_policy = 0;

  const DeviceModel& model() const noexcept { return module->context->device.model; }
  Machine& machine() const { return module->context->device.machine(); }
  std::uint32_t max_threads() const;
};

/// Code that is loaded into a context when it is first used there.
struct Library {
  std::string ptx, cubin, name;
  std::mutex mutex;
  std::map<const Context*, std::shared_ptr<ModuleObject>> modules;
  std::map<std::string, std::shared_ptr<KernelObject>, std::less<>> kernels;

  /// Errors   as load_module
  std::shared_ptr<ModuleObject> module_in(Context& context);
};

struct KernelObject {
  Library* library = nullptr;
  std::string name;
  std::map<abi::CUfunction_attribute, int> attributes;  ///< set before it was loaded somewhere
};

/// What the caller wants of the compiler: where its log goes.
class JitOptions {
 public:
  JitOptions() = default;
  JitOptions(unsigned count, const abi::CUjit_option* keys, void** values);
  void log_error(std::string_view text) const { write(text, error_log_, error_bytes_); }
  void log_info(std::string_view text) const { write(text, info_log_, info_bytes_); }
  /// The sizes become those of what was written.
  void finish() const;
  bool has_error_log() const noexcept { return error_log_.text != nullptr; }

 private:
  struct Buffer {
    char* text = nullptr;
    void** size = nullptr;
  };
  static void write(std::string_view text, const Buffer& log, std::size_t& written);

  Buffer info_log_, error_log_;
  mutable std::size_t info_bytes_ = 0, error_bytes_ = 0;
};

/// The PTX text of an image: of plain text, or the best fitting in a fatbin.
/// Errors   Failure after saying why: CUDA_ERROR_NO_BINARY_FOR_GPU, INVALID_IMAGE
std::string ptx_of(const void* image, const DeviceModel& model);

/// The machine code for the device that a fatbin has beside PTX; empty if there is none.
std::string cubin_of(const void* image, const DeviceModel& model);

struct ModuleText {
  std::string ptx, name;   ///< the name goes into messages
  std::string cubin = {};  ///< cubin_of(), for predicted times
};

/// The text of the file that is to stand in for a module with one of these entries, which is said;
/// without one the text as it is.
/// Errors   Failure after saying why: the file cannot be read, or has no such entry
ModuleText replace_module(ModuleText given, const std::vector<Replacement>& replacements);

/// Errors   Failure; the log says why
std::shared_ptr<ModuleObject> load_module(Context& context, ModuleText given,
                                          const JitOptions& options);

/// A name for code that comes without one.
std::string next_module_name();

/// Reads a whole file. Errors   Failure: CUDA_ERROR_FILE_NOT_FOUND
std::string read_image_file(const char* path);

/// The function of a CUfunction, or of a CUkernel cast to one in the current context.
std::shared_ptr<FunctionObject> find_function(abi::CUfunction handle);
std::shared_ptr<FunctionObject> function_of(const KernelObject& kernel, Context& context);

int get_attribute(const FunctionObject& function, abi::CUfunction_attribute attribute);
void set_attribute(FunctionObject& function, abi::CUfunction_attribute attribute, int value);

}  // namespace tilewright::sim
