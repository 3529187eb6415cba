// The forms, of which make_output_form() makes one.
#pragma once

#include "output_form.h"

namespace lancet {

std::unique_ptr<OutputForm> make_checkpoint_form(const ModelFiles& files);
std::unique_ptr<OutputForm> make_mixed_form(const ModelFiles& files);
std::unique_ptr<OutputForm> make_quantised_form(OutputParts parts);
std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles& files);

}  // namespace lancet
