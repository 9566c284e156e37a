// The other half of the fake driver: modules, kernels, streams, events, graphs, tensor maps.
#include "fake_call.h"

#include <algorithm>
#include <cstring>
#include <regex>
#include <string>

namespace tilewright::device::fake {

using namespace abi;

namespace {

/// Kernels of a PTX text with the bytes of each one's parameters.
std::map<std::string, std::size_t> entries_of(const std::string& ptx) {
  static const std::regex entry(R"(\.entry\s+(\w+)\s*\(([^)]*)\))");
  static const std::regex param(R"(\.param[^\[,]*\.b8\s+\w+\[(\d+)\])");
  std::map<std::string, std::size_t> entries;
  for (std::sregex_iterator it(ptx.begin(), ptx.end(), entry), end; it != end; ++it) {
    const std::string params = (*it)[2];
    std::smatch size;
    entries[(*it)[1]] = std::regex_search(params, size, param) ? std::stoul(size[1]) : 0;
  }
  return entries;
}

/// What a compiler would write about the first line that says "broken"; empty if there is none.
std::string complaint_about(const std::string& ptx) {
  const std::size_t found = ptx.find("broken");
  if (found == std::string::npos) return "";
  const auto line = 1 + std::count(ptx.begin(), ptx.begin() + static_cast<long>(found), '\n');
  return "ptxas application ptx input, line " + std::to_string(line) +
         "; fatal   : Parsing error near 'broken': syntax error\n";
}

void write_log(const std::string& text) {
  auto& options = state().jit_options;
  auto* const log =
      reinterpret_cast<char*>(options[static_cast<int>(CUjit_option::kErrorLogBuffer)]);
  const std::size_t size = options[static_cast<int>(CUjit_option::kErrorLogBufferSizeBytes)];
  if (log != nullptr && size > 0) std::strncpy(log, text.c_str(), size - 1);
}

bool is_elf(const void* image) {
  return std::memcmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0;
}

}  // namespace
}  // namespace tilewright::device::fake

using namespace tilewright::device::abi;
using namespace tilewright::device::fake;

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned num_options,
                            CUjit_option* options, void** values) {
  Call call(__func__);
  state().jit_options.clear();
  for (unsigned i = 0; i < num_options; ++i) {
    state().jit_options[static_cast<int>(options[i])] = number_of(values[i]);
  }
  if (call.is_failed()) return call.result();
  Object object;
  object.kind = "module";
  if (is_elf(image)) {
    object.entries = {{"from_cubin", 8}};
  } else {
    const std::string ptx = static_cast<const char*>(image);
    const std::string complaint = complaint_about(ptx);
    write_log(complaint);
    if (!complaint.empty()) return CUresult::kInvalidPtx;
    object.entries = entries_of(ptx);
  }
  *module = call.add<CUmodule>(std::move(object));
  return CUresult::kSuccess;
}

CUresult cuModuleUnload(CUmodule module) {
  Call call(__func__);
  return call.release(module, "module");
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const found = call.find(module, "module");
  if (found == nullptr) return CUresult::kInvalidHandle;
  const auto entry = found->entries.find(name);
  if (entry == found->entries.end()) return CUresult::kNotFound;
  for (const auto& [handle, object] : state().objects) {  // the same function for the same name
    if (object.kind == "function" && object.name == name) {
      *function = reinterpret_cast<CUfunction>(handle);
      return CUresult::kSuccess;
    }
  }
  Object object;
  object.kind = "function";
  object.name = name;
  object.bytes = entry->second;
  using A = CUfunction_attribute;
  for (const auto& [key, value] : {std::pair{A::kMaxThreadsPerBlock, 384},
                                   {A::kSharedSizeBytes, 1024},
                                   {A::kConstSizeBytes, 0},
                                   {A::kLocalSizeBytes, 16},
                                   {A::kNumRegs, 168},
                                   {A::kPtxVersion, 90},
                                   {A::kBinaryVersion, 90},
                                   {A::kMaxDynamicSharedSizeBytes, 48128},
                                   {A::kClusterSizeMustBeSet, 0},
                                   {A::kRequiredClusterWidth, 0},
                                   {A::kRequiredClusterHeight, 0},
                                   {A::kRequiredClusterDepth, 0},
                                   {A::kNonPortableClusterSizeAllowed, 0}}) {
    object.attributes[static_cast<int>(key)] = value;
  }
  if (std::string(name) == "clustered") {
    object.attributes[static_cast<int>(A::kRequiredClusterWidth)] = 2;
    object.attributes[static_cast<int>(A::kRequiredClusterHeight)] = 1;
    object.attributes[static_cast<int>(A::kRequiredClusterDepth)] = 1;
  }
  *function = call.add<CUfunction>(std::move(object));
  return CUresult::kSuccess;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                              const char* name) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (call.find(module, "module") == nullptr) return CUresult::kInvalidHandle;
  if (std::string(name) != "table") return CUresult::kNotFound;
  *address = 0x1234500;
  *bytes = 64;
  return CUresult::kSuccess;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const object = call.find(function, "function");
  if (object == nullptr) return CUresult::kInvalidHandle;
  *value = object->attributes.at(static_cast<int>(attribute));
  return CUresult::kSuccess;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  Object* const object = call.find(function, "function");
  if (object == nullptr) return CUresult::kInvalidHandle;
  object->attributes.at(static_cast<int>(attribute)) = value;
  return CUresult::kSuccess;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction function,
                                                     int block_threads,
                                                     std::size_t dynamic_shared_bytes) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (call.find(function, "function") == nullptr) return CUresult::kInvalidHandle;
  *num_blocks =
      std::min(2048 / block_threads, static_cast<int>(233472 / (dynamic_shared_bytes + 1)));
  return CUresult::kSuccess;
}

CUresult cuOccupancyMaxActiveClusters(int* num_clusters, CUfunction function,
                                      const CUlaunchConfig* config) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (call.find(function, "function") == nullptr) return CUresult::kInvalidHandle;
  if (config->num_attrs == 0) return CUresult::kInvalidValue;
  *num_clusters = 132 / static_cast<int>(config->attrs[0].value.cluster_dim.x);
  return CUresult::kSuccess;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const object = call.find(function, "function");
  if (object == nullptr) return CUresult::kInvalidHandle;
  if (extra != nullptr) return call.misuse(CUresult::kInvalidValue, "with extra");
  Launch launch;
  launch.kernel = object->name;
  launch.config = *config;
  launch.attributes.assign(config->attrs, config->attrs + config->num_attrs);
  launch.config.attrs = nullptr;  // gone when the call returns
  const auto* const params = static_cast<const std::byte*>(arguments[0]);
  launch.params.assign(params, params + object->bytes);
  return enqueue(
      call, config->stream,
      [launch] {
        state().launches.push_back(launch);
        const auto body = state().kernel_bodies.find(launch.kernel);
        if (body != state().kernel_bodies.end()) body->second(launch.params.data());
      },
      object->name);
}

CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**) {
  Call call(__func__);
  return call.misuse(CUresult::kNotSupported, "where cuLaunchKernelEx does it all");
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call(__func__);
  *least = 0;
  *greatest = -5;
  return call.result();
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  Object object;
  object.kind = "stream";
  object.flags = flags;
  object.priority = priority;
  *stream = call.add<CUstream>(std::move(object));
  return CUresult::kSuccess;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Call call(__func__);
  return call.release(stream, "stream");
}

CUresult cuStreamSynchronize(CUstream stream) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (breaks_capture()) return CUresult::kStreamCaptureUnsupported;
  if (stream != nullptr && call.find(stream, "stream") == nullptr) return CUresult::kInvalidHandle;
  return CUresult::kSuccess;
}

CUresult cuStreamQuery(CUstream stream) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  return call.find(stream, "stream") != nullptr ? CUresult::kSuccess : CUresult::kInvalidHandle;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (call.find(event, "event") == nullptr) return CUresult::kInvalidHandle;
  return call.find(stream, "stream") != nullptr ? CUresult::kSuccess : CUresult::kInvalidHandle;
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  Object object;
  object.kind = "event";
  object.flags = flags;
  *event = call.add<CUevent>(std::move(object));
  return CUresult::kSuccess;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Call call(__func__);
  return call.release(event, "event");
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  Call call(__func__);
  return enqueue(call, stream, [event] {
    const auto found = state().objects.find(number_of(event));
    if (found != state().objects.end()) found->second.tick = ++state().next_tick;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  return call.find(event, "event") != nullptr ? CUresult::kSuccess : CUresult::kInvalidHandle;
}

CUresult cuEventQuery(CUevent event) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  return call.find(event, "event") != nullptr ? CUresult::kSuccess : CUresult::kInvalidHandle;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const first = call.find(start, "event");
  const Object* const second = call.find(end, "event");
  if (first == nullptr || second == nullptr) return CUresult::kInvalidHandle;
  const bool is_timed = first->flags == 0 && second->flags == 0;
  if (!is_timed || !first->tick || !second->tick) return CUresult::kInvalidHandle;
  *milliseconds = static_cast<float>(*second->tick - *first->tick);
  return CUresult::kSuccess;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  Object* const object = call.find(stream, "stream");
  if (object == nullptr) return CUresult::kInvalidHandle;
  if (object->is_capturing) return CUresult::kIllegalState;
  if (mode != CUstreamCaptureMode::kThreadLocal) {
    return call.misuse(CUresult::kInvalidValue, "in a mode that other threads can break");
  }
  object->is_capturing = true;
  captured_stream() = stream;
  return CUresult::kSuccess;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Call call(__func__);
  Object* const object = call.find(stream, "stream");
  if (object == nullptr) return CUresult::kInvalidHandle;
  const bool was_broken = object->is_capture_broken;
  Object recorded;
  recorded.kind = "graph";
  recorded.recorded = std::move(object->recorded);
  recorded.nodes = std::move(object->nodes);
  object->recorded.clear();
  object->nodes.clear();
  object->is_capturing = object->is_capture_broken = false;
  captured_stream() = nullptr;
  *graph = nullptr;
  if (call.is_failed()) return call.result();
  if (was_broken) return CUresult::kStreamCaptureInvalidated;
  *graph = call.add<CUgraph>(std::move(recorded));
  return CUresult::kSuccess;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Call call(__func__);
  return call.release(graph, "graph");
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const found = call.find(graph, "graph");
  if (found == nullptr) return CUresult::kInvalidHandle;
  Object object = *found;
  object.kind = "graph exec";
  *executable = call.add<CUgraphExec>(std::move(object));
  return CUresult::kSuccess;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const found = call.find(executable, "graph exec");
  if (found == nullptr) return CUresult::kInvalidHandle;
  return enqueue(call, stream, [recorded = found->recorded] {
    for (const auto& work : recorded) work();
  });
}

// A node, a function and a kernel of a library are the name in the graph.
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  Object* const found = call.find(graph, "graph");
  if (found == nullptr) return CUresult::kInvalidHandle;
  if (nodes != nullptr)
    for (std::size_t i = 0; i < *count; ++i)
      nodes[i] = reinterpret_cast<CUgraphNode>(&found->nodes.at(i));
  *count = found->nodes.size();
  return CUresult::kSuccess;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  *type = reinterpret_cast<const std::string*>(node)->empty() ? CUgraphNodeType::kMemset
                                                              : CUgraphNodeType::kKernel;
  return CUresult::kSuccess;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  *params = {};
  if (reinterpret_cast<const std::string*>(node)->starts_with("of_library"))
    params->kern = reinterpret_cast<CUkernel>(node);
  else
    params->func = reinterpret_cast<CUfunction>(node);
  return CUresult::kSuccess;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  *name = reinterpret_cast<const std::string*>(function)->c_str();
  return CUresult::kSuccess;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  *name = reinterpret_cast<const std::string*>(kernel)->c_str();
  return CUresult::kSuccess;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  Call call(__func__);
  return call.release(executable, "graph exec");
}

}  // extern "C"
