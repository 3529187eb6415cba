#include "forms.h"
#include "lancet/core/error.h"

namespace lancet {

std::unique_ptr<OutputForm> make_adapter_form(const ModelFiles&) {
  throw ConfigError("output.format: adapter: not here yet");
}

}  // namespace lancet
