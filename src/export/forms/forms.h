// The forms that only make_output_form() makes.
#pragma once

#include "lancet/export/output_form.h"

namespace lancet {

std::unique_ptr<OutputForm> make_quantised_form(OutputParts parts);
std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles& files);
/// Of a GGUF file.
std::unique_ptr<OutputForm> make_gguf_form(const ModelFiles& files, GgufOutputType type);
/// Throws: ConfigError for weights that cannot be written as asked. `edited`: those that may be.
void check_gguf_output(const OutputOptions& asked, const ModelFiles& files, const std::vector<WeightId>& edited);

}  // namespace lancet
