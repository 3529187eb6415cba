#include "kernel_text.h"

#include <algorithm>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/kernels/own_kernels.h"

namespace lancet {
namespace {

constexpr KernelType kKernelTypes[] = {{at::kBFloat16, "bf16", "lancet::Bf16"},
                                       {at::kHalf, "f16", "lancet::F16"},
                                       {at::kFloat, "f32", "float"},
                                       {at::kDouble, "f64", "double"}};

bool is_header(const BuiltInFile& file) { return file.name.ends_with(".h"); }

}  // namespace

const std::string& kernel_text() {
  static const std::string text(std::ranges::find_if_not(kernel_files(), is_header)->text);
  return text;
}

const std::map<std::string, std::string>& kernel_headers() {
  static const std::map<std::string, std::string> headers = [] {
    std::map<std::string, std::string> all;
    for (const BuiltInFile& file : kernel_files())
      if (is_header(file)) all.emplace(file.name, file.text);
    return all;
  }();
  return headers;
}

const KernelType* find_kernel_type(at::ScalarType type) {
  const auto* found = std::ranges::find(kKernelTypes, type, &KernelType::type);
  return found == std::end(kKernelTypes) ? nullptr : found;
}

const KernelType& kernel_type(at::ScalarType type) {
  if (const KernelType* found = find_kernel_type(type)) return *found;
  throw std::logic_error(cat("there are no kernels of ours for ", at::toString(type)));
}

std::string kernel_function(const std::string& name, at::ScalarType type) {
  return cat("lancet_", name, "_", kernel_type(type).name);
}

}  // namespace lancet
