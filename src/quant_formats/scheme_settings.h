// Finds the settings of quantisation in a config.json, and their method. Defined in quant_scheme.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace lancet {

/// Throws: CheckpointError if the text is not a JSON object.
OrderedJson parse_config(std::string_view text, std::string_view where);

struct SettingsPlace {
  std::string key = {};                                               ///< "text_config.quantization_config"
  OrderedJson::json_pointer pointer = OrderedJson::json_pointer("");  ///< path of the settings
};

/// Finds settings, also in the part of a multi-modal configuration that describes the language model.
std::vector<SettingsPlace> find_settings(const OrderedJson& config);

/// Returns the method's name from settings that are an object: the name that they have or imply.
std::string method_name(SchemeKeys& keys);

/// Returns nullptr if lancet does not read the method.
const QuantMethod* find_method(std::string_view name);
std::string known_methods();

}  // namespace lancet
