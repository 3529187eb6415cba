// The sizes of keys for which another tool's statistics were computed.
#pragma once

#include <span>
#include <string_view>

#include "lancet/models/model_config.h"

namespace lancet {

/// Returns the size of the layers' keys. Throws: ConfigError that names `option`, for layers with experts.
int64_t imported_key_size(const ModelConfig& config, std::span<const int64_t> layers, std::string_view option);

}  // namespace lancet
