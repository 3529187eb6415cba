// Checks the place of an output before hours of work.
#pragma once

#include "lancet/io/model_file_output.h"

namespace lancet {

/// Checks that the output does not overlap the model that is edited, and that its model file, if it has one, can be
/// written: it does not exist, or `policy` is kReplace and the existing file is a GGUF file whose metadata says that
/// lancet wrote it. Throws: ConfigError.
void check_output_place(const OutputPlace& place, IfExists policy, const std::filesystem::path& model);

}  // namespace lancet
