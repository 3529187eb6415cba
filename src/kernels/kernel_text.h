// The text of our kernels, as CMake puts it into the program, and the types that it is compiled for.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <string>

#include "lancet/core/built_in_file.h"

namespace lancet {

/// decoder_kernels.cu and the headers that it includes. By CMake (embed_files).
std::span<const BuiltInFile> kernel_files();

const std::string& kernel_text();
/// Headers by the name that the text includes them by.
const std::map<std::string, std::string>& kernel_headers();

struct KernelType {
  at::ScalarType type;
  const char* name;  ///< end of kernels' names
  const char* cpp;   ///< name in the text
};

/// Null: no kernels are made for it.
const KernelType* find_kernel_type(at::ScalarType type);
/// Throws: std::logic_error where there are none.
const KernelType& kernel_type(at::ScalarType type);

}  // namespace lancet
