#include "lancet/checkpoint/quantize_config.h"

#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/mapped_file.h"

namespace lancet {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Whether `config` has such settings, also in the part of a multi-modal configuration that describes the language
/// model (quant_formats/scheme_settings.h).
bool has_settings(const OrderedJson& config) {
  const auto has = [](const OrderedJson& object) {
    for (const char* key : {"quantization_config", "compression_config"})
      if (const auto at = object.find(key); at != object.end() && !at->is_null() && *at != OrderedJson(false))
        return true;
    return false;
  };
  if (has(config)) return true;
  const auto nested = config.find("text_config");
  return nested != config.end() && nested->is_object() && has(*nested);
}

/// nullopt: its readers say what is wrong with it.
std::optional<OrderedJson> parse_config_json(std::string_view text) {
  try {
    if (OrderedJson config = parse_ordered_json(text); config.is_object()) return config;
  } catch (const JsonProblem&) {
  }
  return std::nullopt;
}

OrderedJson load_quantize_config(const std::filesystem::path& file) {
  std::string problem = "another kind of value";
  try {
    if (OrderedJson settings = parse_ordered_json(MappedFile::open(file)->text()); settings.is_object())
      return settings;
  } catch (const JsonProblem& found) {
    problem = found.what();
  }
  throw CheckpointError(cat(file.string(), ": expected a JSON object, since config.json has no quantization_config, ",
                            "got ", problem, "; download the file again"));
}

}  // namespace

std::string with_quantize_config(std::string config_json, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kQuantizeConfigFile;
  if (!has_entry(file)) return config_json;
  std::optional<OrderedJson> config = parse_config_json(config_json);
  if (!config || has_settings(*config)) return config_json;
  OrderedJson settings = load_quantize_config(file);
  if (const auto method = settings.find("quant_method"); method == settings.end() || method->is_null())
    settings["quant_method"] = "gptq";
  (*config)["quantization_config"] = std::move(settings);
  return config->dump(2) + "\n";
}

}  // namespace lancet
