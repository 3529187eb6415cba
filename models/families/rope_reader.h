// Reads rotary embeddings from config.json: from keys beside others (transformers 4), or from their own object.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "config_reader.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// The values of a family's rotary embedding for keys that are absent.
struct RopeDefaults {
  double theta = 10000.0;
  std::optional<double> share = {};  ///< rotated share of each head, which partial_rotary_factor changes; nullopt: all
                                     ///< of it, and the usual embedding does not read this key
  /// Takes precedence over the object's value; 0: the object's value, else max_positions.
  int64_t original_max_positions = 0;
  std::vector<std::string_view> other_keys = {};  ///< keys of the object that the family reads itself
};
/// transformers 4: rope_theta is beside rope_scaling; transformers 5: both are inside rope_parameters, which has no
/// rope_scaling. Reads config.head_dim and config.max_positions.
RopeConfig read_rope(ConfigReader& keys, const ModelConfig& config, RopeDefaults defaults = {});
/// As read_rope(), without rope_theta outside the object.
RopeConfig read_rope_under(ConfigReader& keys, const ModelConfig& config, const RopeDefaults& defaults);
/// Reads one such object: rope_parameters, rope_scaling, or the part of it for one type of layers.
RopeConfig read_rope_object(ConfigReader& object, const ModelConfig& config, const RopeDefaults& defaults);
/// Reads the embeddings of layers without a window and of those with one, from an object for each in rope_parameters
/// (transformers 5).
void read_rope_by_type(ConfigReader& keys, ConfigReader& parameters, const RopeDefaults& full,
                       const RopeDefaults& window, ModelConfig& config);
/// Adds a problem for `truncate` beside such objects: transformers reads it for both, but no file has it.
void refuse_truncate(ConfigReader& object);
/// Adds a problem for partial_rotary_factor beside a scaled embedding, in a family that rotates whole heads.
void refuse_share_beside(ConfigReader& keys, const RopeConfig& rope);

}  // namespace lancet
