// Where a config.json has its settings of quantisation, and which method's they are. Defined in quant_scheme.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace lancet {

/// Throws: CheckpointError when the text is no JSON object.
OrderedJson parse_config(std::string_view text, std::string_view where);

struct SettingsPlace {
  std::string key = {};                                               ///< "text_config.quantization_config"
  OrderedJson::json_pointer pointer = OrderedJson::json_pointer("");  ///< place, to look it up
};

/// Finds settings, also in the part of a multi-modal configuration that describes the language model.
std::vector<SettingsPlace> find_settings(const OrderedJson& config);

/// Reads settings that are an object: the method's name as they have it, or as they imply it.
std::string method_name(SchemeKeys& keys);

/// nullptr: it is none that is read.
const QuantMethod* find_method(std::string_view name);
std::string known_methods();

}  // namespace lancet
