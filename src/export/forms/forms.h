// The forms that only make_output_form() makes.
#pragma once

#include "lancet/export/output_form.h"

namespace lancet {

std::unique_ptr<OutputForm> make_quantised_form(OutputParts parts);
std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles& files);

}  // namespace lancet
