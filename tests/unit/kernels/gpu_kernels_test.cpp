// How our kernels get onto a GPU: with NVRTC itself, as far as it goes without one, and with libraries that play both
// it and the driver.
#include "lancet/kernels/gpu_kernels.h"

#include <c10/util/Exception.h>
#include <cuda.h>
#include <gtest/gtest.h>
#include <nvrtc.h>
#include <torch/types.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

class LogLines : public Reporter {
 public:
  std::vector<std::string> lines;

 protected:
  void on_log(LogLevel, std::string_view text) override { lines.emplace_back(text); }
  void on_progress(const StageProgress&) override {}
};

template <typename Expected, typename Call>
void expect_words(const Call& call, const std::vector<std::string>& words) {
  try {
    call();
    FAIL() << "expected an error";
  } catch (const Expected& error) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

constexpr at::ScalarType kTypesOfKernels[] = {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble};

TEST(CompiledKernels, CompileForEachGeneration) {
  const SymbolSource compiler = open_compiler();
  if (!compiler) GTEST_SKIP() << "there is no libnvrtc.so.13: the wheel nvidia-cuda-nvrtc of torch brings it";
  // tests/ptx compiles the one that is left out
  const std::vector<int64_t> all{80, 90, 100}, one{100};
  for (const int64_t capability : std::getenv("LANCET_TEST_FULL") != nullptr ? all : one)
    for (const at::ScalarType type : kTypesOfKernels) {
      const std::string cubin = compile_kernels(compiler, capability, type);
      EXPECT_EQ(cubin.substr(0, 4),
                "\x7F"
                "ELF");
      for (const char* name :
           {"norm", "norm_gradient", "gate", "gate_gradient", "rotate", "split_heads", "join_heads", "loss",
            "loss_gradient", "ragged_attention", "ragged_query_gradient", "ragged_key_gradient"})
        EXPECT_NE(cubin.find(kernel_function(name, type)), std::string::npos) << name;
    }
}

TEST(CompiledKernels, TellTheCompilersWords) {
  const SymbolSource compiler = open_compiler();
  if (!compiler) GTEST_SKIP() << "there is no libnvrtc.so.13: the wheel nvidia-cuda-nvrtc of torch brings it";
  expect_words<std::runtime_error>([&] { compile_kernels(compiler, 1, at::kFloat); },
                                   {"NVRTC_ERROR_INVALID_OPTION", "sm_1"});
}

/// What the libraries below were told, and what they answer.
struct FakeGpu {
  int compilations = 0, loads = 0, launches = 0, contexts_entered = 0;
  nvrtcResult compile_result = NVRTC_SUCCESS;
  CUresult load_result = CUDA_SUCCESS, launch_result = CUDA_SUCCESS;
  bool has_context = false;
  std::string options, function;
  std::set<std::string> functions;  ///< their addresses are the handles
  unsigned blocks = 0, threads = 0;
  CUstream stream = nullptr;
  void* first_argument = nullptr;
};
FakeGpu gpu;

nvrtcResult fake_create(nvrtcProgram* program, const char*, const char*, int, const char* const*, const char* const*) {
  *program = reinterpret_cast<nvrtcProgram>(&gpu);
  return NVRTC_SUCCESS;
}
nvrtcResult fake_compile(nvrtcProgram, int n, const char* const* options) {
  ++gpu.compilations;
  gpu.options.clear();
  for (int i = 0; i < n; ++i) gpu.options += std::string(options[i]) + " ";
  return gpu.compile_result;
}
nvrtcResult fake_size(nvrtcProgram, size_t* size) {
  *size = 6;
  return NVRTC_SUCCESS;
}
nvrtcResult fake_bytes(nvrtcProgram, char* bytes) {
  std::memcpy(bytes, "words", 6);
  return NVRTC_SUCCESS;
}
const char* fake_nvrtc_error(nvrtcResult) { return "NVRTC_ERROR_COMPILATION"; }
nvrtcResult fake_destroy(nvrtcProgram*) { return NVRTC_SUCCESS; }

CUresult fake_get_device(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
CUresult fake_get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}
CUresult fake_current_context(CUcontext* context) {
  *context = gpu.has_context ? reinterpret_cast<CUcontext>(&gpu) : nullptr;
  return CUDA_SUCCESS;
}
CUresult fake_retain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&gpu);
  return CUDA_SUCCESS;
}
CUresult fake_set_context(CUcontext) {
  ++gpu.contexts_entered;
  gpu.has_context = true;
  return CUDA_SUCCESS;
}
CUresult fake_load(CUmodule* module, const void* image) {
  EXPECT_STREQ(static_cast<const char*>(image), "words");
  ++gpu.loads;
  *module = reinterpret_cast<CUmodule>(&gpu);
  return gpu.load_result;
}
CUresult fake_get_function(CUfunction* function, CUmodule, const char* name) {
  *function = reinterpret_cast<CUfunction>(const_cast<std::string*>(&*gpu.functions.insert(name).first));
  return CUDA_SUCCESS;
}
CUresult fake_launch(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                     unsigned, CUstream stream, void** arguments, void**) {
  ++gpu.launches;
  gpu.function = *reinterpret_cast<const std::string*>(function);
  gpu.blocks = blocks;
  gpu.threads = threads;
  gpu.stream = stream;
  gpu.first_argument = *static_cast<void**>(arguments[0]);
  return gpu.launch_result;
}
CUresult fake_cuda_error_name(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";
  return CUDA_SUCCESS;
}
CUresult fake_cuda_error_text(CUresult, const char** text) {
  *text = "what it means";
  return CUDA_SUCCESS;
}

SymbolSource from(std::map<std::string, void*> functions) {
  return [functions = std::move(functions)](const char* name) {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
  };
}

template <typename F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

GpuLibraries fake_libraries() {
  return {from({{"nvrtcCreateProgram", address(fake_create)},
                {"nvrtcCompileProgram", address(fake_compile)},
                {"nvrtcGetCUBINSize", address(fake_size)},
                {"nvrtcGetCUBIN", address(fake_bytes)},
                {"nvrtcGetProgramLogSize", address(fake_size)},
                {"nvrtcGetProgramLog", address(fake_bytes)},
                {"nvrtcGetErrorString", address(fake_nvrtc_error)},
                {"nvrtcDestroyProgram", address(fake_destroy)}}),
          from({{"cuDeviceGet", address(fake_get_device)},
                {"cuDeviceGetAttribute", address(fake_get_attribute)},
                {"cuCtxGetCurrent", address(fake_current_context)},
                {"cuDevicePrimaryCtxRetain", address(fake_retain)},
                {"cuCtxSetCurrent", address(fake_set_context)},
                {"cuModuleLoadData", address(fake_load)},
                {"cuModuleGetFunction", address(fake_get_function)},
                {"cuLaunchKernel", address(fake_launch)},
                {"cuGetErrorName", address(fake_cuda_error_name)},
                {"cuGetErrorString", address(fake_cuda_error_text)}}),
          [](at::Device) -> void* { return &gpu.stream; }};
}

class GpuKernelsOfFakes : public ::testing::Test {
 protected:
  void SetUp() override { gpu = FakeGpu(); }

  const at::Device host_ = Placement::host();
};

TEST_F(GpuKernelsOfFakes, AreCompiledOnceForADeviceAndAType) {
  GpuKernels kernels(fake_libraries());
  EXPECT_EQ(kernels.in_use(), std::nullopt);
  EXPECT_TRUE(kernels.serves(host_, at::kBFloat16));
  EXPECT_TRUE(kernels.serves(host_, at::kBFloat16));
  EXPECT_EQ(gpu.compilations, 1);
  EXPECT_EQ(gpu.options.find("--gpu-architecture=sm_90 "), 0U) << gpu.options;
  EXPECT_TRUE(kernels.serves(host_, at::kFloat));
  EXPECT_EQ(gpu.compilations, 2);
  EXPECT_FALSE(kernels.serves(host_, at::kLong));
  EXPECT_EQ(kernels.in_use(), "own");
}

TEST_F(GpuKernelsOfFakes, AskTheDriverForNoFunctionAtALaunch) {
  GpuLibraries libraries = fake_libraries();
  int asked = 0;
  libraries.driver = [&asked, driver = libraries.driver](const char* name) {
    ++asked;
    return driver(name);
  };
  GpuKernels kernels(std::move(libraries));
  const LauncherScope scope(kernels);
  silu_times(torch::ones({3}), torch::ones({3}));
  const int before = asked;
  silu_times(torch::ones({3}), torch::ones({3}));
  EXPECT_EQ(asked, before);
  EXPECT_EQ(gpu.launches, 2);
}

TEST_F(GpuKernelsOfFakes, AreLaunchedOnTorchsStreamInAContext) {
  GpuKernels kernels(fake_libraries());
  const Tensor x = torch::ones({6, 1000}).to(at::kHalf), weight = torch::ones({1000}).to(at::kHalf);
  const LauncherScope scope(kernels);
  rms_norm(x, weight, 1e-5);
  EXPECT_EQ(gpu.function, "lancet_norm_f16");
  EXPECT_EQ(gpu.blocks, 6U);
  EXPECT_EQ(gpu.threads, 128U);  // whole warps, eight numbers a thread
  EXPECT_EQ(gpu.first_argument, x.const_data_ptr());
  EXPECT_EQ(gpu.stream, reinterpret_cast<CUstream>(&gpu.stream));
  EXPECT_EQ(gpu.contexts_entered, 1);
  gpu.has_context = false;  // as another thread finds it
  silu_times(x, x);
  EXPECT_EQ(gpu.function, "lancet_gate_f16");
  EXPECT_EQ(gpu.contexts_entered, 2);
}

/// Expects all that a user sees where there are no kernels: one warning, and the same numbers.
void expect_torch(GpuLibraries libraries, const std::string& why) {
  GpuKernels kernels(std::move(libraries));
  const Tensor x = torch::arange(12, torch::kFloat).view({3, 4}), weight = torch::ones({4});
  const Tensor expected = rms_norm(x, weight, 1e-5);
  LogLines log;
  const ReporterScope reporting(log);
  const LauncherScope scope(kernels);
  EXPECT_TRUE(torch::equal(rms_norm(x, weight, 1e-5), expected));
  rms_norm(x.to(at::kDouble), weight.to(at::kDouble), 1e-5);
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("lancet's own kernels cannot be used"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find(why), std::string::npos) << log.lines[0];
  EXPECT_EQ(kernels.in_use(), "torch");
  EXPECT_EQ(gpu.launches, 0);
}

TEST_F(GpuKernelsOfFakes, WithoutACompilerTorchRuns) {
  GpuLibraries libraries = fake_libraries();
  libraries.compiler = {};
  expect_torch(libraries, "libnvrtc.so.13");
}

TEST_F(GpuKernelsOfFakes, WithoutADriverTorchRuns) {
  GpuLibraries libraries = fake_libraries();
  libraries.driver = {};
  expect_torch(libraries, "libcuda.so.1");
}

TEST_F(GpuKernelsOfFakes, WithAnotherLibraryTorchRuns) {
  GpuLibraries libraries = fake_libraries();
  libraries.compiler = from({});
  expect_torch(libraries, "no function nvrtcCreateProgram");
}

TEST_F(GpuKernelsOfFakes, WhereTheTextDoesNotCompileTorchRuns) {
  gpu.compile_result = NVRTC_ERROR_COMPILATION;
  expect_torch(fake_libraries(), "NVRTC_ERROR_COMPILATION for --gpu-architecture=sm_90: words");
}

TEST_F(GpuKernelsOfFakes, WhereTheProgramCannotBeLoadedTorchRuns) {
  gpu.load_result = CUDA_ERROR_INVALID_IMAGE;
  expect_torch(fake_libraries(), "cuModuleLoadData: CUDA_ERROR_ILLEGAL_ADDRESS: what it means");
  gpu.load_result = CUDA_ERROR_OUT_OF_MEMORY;
  expect_torch(fake_libraries(), "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_F(GpuKernelsOfFakes, ALaunchThatFailsIsAnError) {
  GpuKernels kernels(fake_libraries());
  const LauncherScope scope(kernels);
  gpu.launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  expect_words<PlacementError>([] { silu_times(torch::ones({3}), torch::ones({3})); },
                               {"lancet_gate_f32", "CUDA_ERROR_ILLEGAL_ADDRESS: what it means"});
  gpu.launch_result = CUDA_ERROR_OUT_OF_MEMORY;  // batches are halved for it
  EXPECT_THROW(silu_times(torch::ones({3}), torch::ones({3})), c10::OutOfMemoryError);
}

TEST(KernelsInUse, AreNoneWithoutAGpu) { EXPECT_EQ(kernels_in_use(), std::nullopt); }

}  // namespace
}  // namespace lancet
