#include "imported_keys.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

int64_t imported_key_size(const ModelConfig& config, std::span<const int64_t> layers, std::string_view option) {
  for (const int64_t layer : layers)
    if (config.has_experts(layer))
      throw ConfigError(cat(option, ": layer ", layer, " has ", config.experts.count,
                            " experts, each of which needs moments of its own, expected layers without: leave it out, "
                            "and they are taken of text (statistics.corpus)"));
  return config.d_ffn;
}

}  // namespace lancet
