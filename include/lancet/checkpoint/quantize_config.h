// Settings of quantisation that a model folder keeps apart: quantize_config.json, of AutoGPTQ's time.
#pragma once

#include <filesystem>
#include <string>

namespace lancet {

inline constexpr const char* kQuantizeConfigFile = "quantize_config.json";

/// The text of config.json as programs of today read it. Where it says nothing of quantisation and quantize_config.json
/// lies in the same folder, that stands in it as its quantization_config, of the method gptq where it names none; the
/// text is then laid out as transformers writes it. Otherwise, and where it is no JSON object, it is as it was.
/// Throws: CheckpointError when quantize_config.json is needed and is no JSON object.
std::string with_quantize_config(std::string config_json, const std::filesystem::path& folder);

}  // namespace lancet
