#include "lancet/kernels/gpu_kernels.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <cuda.h>

#include <algorithm>
#include <stdexcept>

#include "kernel_text.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Names of all kernels in decoder_kernels.cu.
constexpr const char* kKernelNames[] = {"norm",
                                        "norm_gradient",
                                        "gate",
                                        "gate_gradient",
                                        "rotate",
                                        "split_heads",
                                        "join_heads",
                                        "loss",
                                        "loss_gradient",
                                        "ragged_attention",
                                        "ragged_query_gradient",
                                        "ragged_key_gradient"};

/// Calls a function of the CUDA driver. Throws: std::runtime_error with the error's name; c10::OutOfMemoryError.
template <typename F, typename... Arguments>
void call_function(const SymbolSource& driver, void* symbol, const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<F*>(symbol);
  if (function == nullptr) throw std::runtime_error(cat("NVIDIA's driver has no function ", name));
  const CUresult result = function(arguments...);
  if (result == CUDA_SUCCESS) return;
  const std::string words = cat(name, ": ", cuda_error_text(driver, result));
  TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, words);
  throw std::runtime_error(words);
}

template <typename F, typename... Arguments>
void call_driver(const SymbolSource& driver, const char* name, Arguments... arguments) {
  call_function<F>(driver, driver(name), name, arguments...);
}

CUdevice device_of(const SymbolSource& driver, at::Device device) {
  CUdevice handle = 0;
  call_driver<decltype(cuDeviceGet)>(driver, "cuDeviceGet", &handle, std::max<int>(0, device.index()));
  return handle;
}

int64_t capability_of(const SymbolSource& driver, at::Device device) {
  const CUdevice handle = device_of(driver, device);
  int major = 0, minor = 0;
  call_driver<decltype(cuDeviceGetAttribute)>(driver, "cuDeviceGetAttribute", &major,
                                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
  call_driver<decltype(cuDeviceGetAttribute)>(driver, "cuDeviceGetAttribute", &minor,
                                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
  return int64_t{major} * 10 + minor;
}

std::map<std::string, void*> load_functions(const SymbolSource& driver, const std::string& cubin, at::ScalarType type) {
  CUmodule module = nullptr;
  call_driver<decltype(cuModuleLoadData)>(driver, "cuModuleLoadData", &module, cubin.data());
  std::map<std::string, void*> functions;
  for (const char* name : kKernelNames) {
    CUfunction function = nullptr;
    call_driver<decltype(cuModuleGetFunction)>(driver, "cuModuleGetFunction", &function, module,
                                               kernel_function(name, type).c_str());
    functions[name] = function;
  }
  return functions;
}

}  // namespace

GpuKernels::GpuKernels(GpuLibraries libraries) : libraries_(std::move(libraries)) {
  if (!libraries_.driver) return;
  current_context_ = libraries_.driver("cuCtxGetCurrent");
  launch_kernel_ = libraries_.driver("cuLaunchKernel");
}

void GpuKernels::enter_context(at::Device device) const {
  CUcontext context = nullptr;
  call_function<decltype(cuCtxGetCurrent)>(libraries_.driver, current_context_, "cuCtxGetCurrent", &context);
  if (context != nullptr) return;
  call_driver<CUresult(CUcontext*, CUdevice)>(libraries_.driver, "cuDevicePrimaryCtxRetain", &context,
                                              device_of(libraries_.driver, device));
  call_driver<decltype(cuCtxSetCurrent)>(libraries_.driver, "cuCtxSetCurrent", context);
}

GpuKernels::Program GpuKernels::load(at::Device device, at::ScalarType type) const {
  try {
    if (!libraries_.driver) return {"there is no driver of NVIDIA's (libcuda.so.1)", {}};
    const c10::DeviceGuard guard(device);
    enter_context(device);
    const std::string cubin = compile_kernels(libraries_.compiler, capability_of(libraries_.driver, device), type);
    return {"", load_functions(libraries_.driver, cubin, type)};
  } catch (const c10::Error& error) {
    return {error.what_without_backtrace(), {}};
  } catch (const std::exception& error) {
    return {error.what(), {}};
  }
}

const GpuKernels::Program& GpuKernels::program(at::Device device, at::ScalarType type) {
  const std::lock_guard lock(mutex_);
  const Key key{device.index(), type};
  auto found = programs_.find(key);
  if (found == programs_.end()) found = programs_.emplace(key, load(device, type)).first;
  const Program& program = found->second;
  if (!program.problem.empty() && !has_warned_) {
    has_warned_ = true;
    log_warning(cat(device.str(), ": lancet's own kernels cannot be used, torch's operations take their place, which ",
                    "are slower: ", program.problem));
  }
  return program;
}

bool GpuKernels::serves(at::Device device, at::ScalarType type) {
  return find_kernel_type(type) != nullptr && program(device, type).problem.empty();
}

void GpuKernels::launch(at::Device device, const KernelLaunch& launch) {
  const Program& ready = program(device, launch.type);
  try {
    const c10::DeviceGuard guard(device);
    enter_context(device);
    call_function<decltype(cuLaunchKernel)>(
        libraries_.driver, launch_kernel_, "cuLaunchKernel", static_cast<CUfunction>(ready.functions.at(launch.name)),
        static_cast<unsigned>(launch.blocks), 1U, 1U, static_cast<unsigned>(launch.threads), 1U, 1U, 0U,
        static_cast<CUstream>(libraries_.stream(device)), const_cast<void**>(launch.arguments.data()),
        static_cast<void**>(nullptr));
  } catch (const std::runtime_error& error) {
    throw PlacementError(cat(
        device.str(), ": the kernel ", kernel_function(launch.name, launch.type), " could not be launched: ",
        error.what(), ". An earlier operation there may have failed; LANCET_KERNELS=torch runs without our kernels"));
  }
}

std::optional<std::string> GpuKernels::in_use() const {
  const std::lock_guard lock(mutex_);
  if (programs_.empty()) return std::nullopt;
  const auto works = [](const auto& entry) { return entry.second.problem.empty(); };
  if (std::ranges::all_of(programs_, works)) return "own";
  return std::ranges::any_of(programs_, works) ? "own and torch" : "torch";
}

}  // namespace lancet
