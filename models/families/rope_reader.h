// Rotary embeddings as config.json writes them: beside other keys (transformers 4) or in an object of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "config_reader.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// What a family's rotary embedding is where config.json says nothing.
struct RopeDefaults {
  double theta = 10000.0;
  std::optional<double> share = {};    ///< share of each head, which partial_rotary_factor changes; none: all, and the
                                       ///< usual embedding does not read that key
  int64_t original_max_positions = 0;  ///< value before what the object says; 0: what it says, else max_positions
  std::vector<std::string_view> other_keys = {};  ///< keys of the object that the family reads itself
};
/// transformers 4: rope_theta beside rope_scaling; transformers 5: both inside rope_parameters, where no rope_scaling
/// is. Reads config.head_dim and config.max_positions.
RopeConfig read_rope(ConfigReader& keys, const ModelConfig& config, RopeDefaults defaults = {});
/// Reads likewise, without rope_theta beside them.
RopeConfig read_rope_under(ConfigReader& keys, const ModelConfig& config, const RopeDefaults& defaults);
/// One object of those: rope_parameters, rope_scaling, or one layer type's part of it.
RopeConfig read_rope_object(ConfigReader& object, const ModelConfig& config, const RopeDefaults& defaults);
/// Reads the embeddings of layers without a window and of those with one: an object for each in rope_parameters
/// (transformers 5).
void read_rope_by_type(ConfigReader& keys, ConfigReader& parameters, const RopeDefaults& full,
                       const RopeDefaults& window, ModelConfig& config);
/// Notes `truncate` beside such objects, where transformers reads it for both and no file has it.
void refuse_truncate(ConfigReader& object);
/// Notes a partial_rotary_factor beside a scaled embedding in a family that turns whole heads.
void refuse_share_beside(ConfigReader& keys, const RopeConfig& rope);

}  // namespace lancet
