// The keys that another tool's statistics are of.
#pragma once

#include <span>
#include <string_view>

#include "lancet/models/model_config.h"

namespace lancet {

/// Numbers of the layers' keys. Throws: ConfigError, naming `option`, for layers with experts.
int64_t imported_key_size(const ModelConfig& config, std::span<const int64_t> layers, std::string_view option);

}  // namespace lancet
