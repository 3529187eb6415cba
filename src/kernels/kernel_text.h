// The source text of our kernels, which CMake embeds in the program, and the types that it is compiled for.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <string>

#include "lancet/core/built_in_file.h"

namespace lancet {

/// decoder_kernels.cu and the headers that it includes. Defined by CMake (embed_files).
std::span<const BuiltInFile> kernel_files();

const std::string& kernel_text();
/// Headers by the name in the text's #include lines.
const std::map<std::string, std::string>& kernel_headers();

struct KernelType {
  at::ScalarType type;
  const char* name;  ///< suffix of the kernels' names
  const char* cpp;   ///< name of the type in the source text
};

/// Null: there are no kernels for this type.
const KernelType* find_kernel_type(at::ScalarType type);
/// Throws: std::logic_error if there are no kernels for this type.
const KernelType& kernel_type(at::ScalarType type);

}  // namespace lancet
