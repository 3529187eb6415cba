// NVRTC, loaded at run time: it is part of torch's wheel, which loads it only when torch fuses operations itself.
#include <ATen/Context.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "kernel_text.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gpu_kernels.h"

namespace lancet {
namespace {

constexpr const char* kCompilerName = "libnvrtc.so.13";

/// Returns the folder of torch's libraries; the folders of NVIDIA's wheels are beside it.
std::filesystem::path torch_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

template <typename F>
F* compiler_function(const SymbolSource& compiler, const char* name) {
  if (auto* function = reinterpret_cast<F*>(compiler(name))) return function;
  throw std::runtime_error(cat(kCompilerName, " has no function ", name));
}

/// One program of NVRTC, and the operations on it.
class Compilation {
 public:
  explicit Compilation(const SymbolSource& compiler) : compiler_(compiler) {
    std::vector<const char*> texts, names;
    for (const auto& [name, text] : kernel_headers()) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    check(find<decltype(nvrtcCreateProgram)>("nvrtcCreateProgram")(&program_, kernel_text().c_str(),
                                                                   "decoder_kernels.cu", static_cast<int>(names.size()),
                                                                   texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Compilation() {
    if (auto* destroy = reinterpret_cast<decltype(nvrtcDestroyProgram)*>(compiler_("nvrtcDestroyProgram")))
      destroy(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    const nvrtcResult result = find<decltype(nvrtcCompileProgram)>("nvrtcCompileProgram")(
        program_, static_cast<int>(words.size()), words.data());
    if (result != NVRTC_SUCCESS) throw std::runtime_error(cat(name_of(result), " for ", options[0], ": ", log()));
  }

  std::string cubin() {
    size_t size = 0;
    check(find<decltype(nvrtcGetCUBINSize)>("nvrtcGetCUBINSize")(program_, &size), "nvrtcGetCUBINSize");
    std::string bytes(size, '\0');
    check(find<decltype(nvrtcGetCUBIN)>("nvrtcGetCUBIN")(program_, bytes.data()), "nvrtcGetCUBIN");
    return bytes;
  }

 private:
  template <typename F>
  F* find(const char* name) const {
    return compiler_function<F>(compiler_, name);
  }

  std::string log() const {
    size_t size = 0;
    check(find<decltype(nvrtcGetProgramLogSize)>("nvrtcGetProgramLogSize")(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    check(find<decltype(nvrtcGetProgramLog)>("nvrtcGetProgramLog")(program_, text.data()), "nvrtcGetProgramLog");
    return text.substr(0, text.find('\0'));
  }

  std::string name_of(nvrtcResult result) const {
    return find<decltype(nvrtcGetErrorString)>("nvrtcGetErrorString")(result);
  }

  void check(nvrtcResult result, const char* what) const {
    if (result != NVRTC_SUCCESS) throw std::runtime_error(cat(what, ": ", name_of(result)));
  }

  const SymbolSource& compiler_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

SymbolSource open_compiler() {
  if (SymbolSource found = open_library(kCompilerName)) return found;
  const std::filesystem::path torch = torch_folder();
  return torch.empty() ? SymbolSource() : open_library(torch / "../../nvidia/cu13/lib" / kCompilerName);
}

std::string compile_kernels(const SymbolSource& compiler, int64_t capability, at::ScalarType type) {
  if (!compiler) throw std::runtime_error(cat("there is no ", kCompilerName, ", which torch's wheel for CUDA brings"));
  const KernelType& names = kernel_type(type);
  Compilation compilation(compiler);
  compilation.compile({cat("--gpu-architecture=sm_", capability), "--std=c++17", "--device-as-default-execution-space",
                       cat("--define-macro=LANCET_KERNEL_NAME=", names.name),
                       cat("--define-macro=LANCET_KERNEL_TYPE=", names.cpp)});
  return compilation.cubin();
}

}  // namespace lancet
