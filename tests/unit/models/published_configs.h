// config.json of public models, from tests/fixtures/published, and what becomes of them when some keys are changed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/models/model_config.h"

namespace lancet {

using Json = nlohmann::json;

/// A public model's config.json with some keys changed.
inline Json published(const std::string& name, const Json& changes = Json::object()) {
  const std::filesystem::path file =
      std::filesystem::path(LANCET_SOURCE_DIR) / "tests" / "fixtures" / "published" / (name + ".json");
  Json config = Json::parse(read_text_file(file, "config.json"));
  config.update(changes);
  return config;
}

inline ModelConfig read(const Json& config) { return parse_model_config(config.dump(), "", {}, "config.json"); }

/// What is said of a configuration that is refused.
inline std::string refusal(const Json& config) {
  try {
    read(config);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace lancet
