// Published (or tuned) options of a method for a model: data/presets/, which are embedded in the program.
// `editor.preset` of a job names a preset, or lets the model's config.json choose one. The job's own keys override it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// The facts of config.json that distinguish models. Base and instruct models often agree in all of them and share
/// presets.
struct ModelFacts {
  std::string model_type;
  /// Keys of config.json, always the same keys in the same order.
  std::vector<std::pair<std::string, int64_t>> sizes;
  bool operator==(const ModelFacts&) const = default;
};

ModelFacts facts_of(const ModelConfig& config);
/// Returns a map with config.json's keys.
ConfigTree to_tree(const ModelFacts& facts);
/// Returns "llama, hidden_size 4096, ...".
std::string to_text(const ModelFacts& facts);

struct Preset {
  std::string name;                 ///< the file's name, without .yaml
  std::vector<std::string> models;  ///< names of models with these facts, for people to read
  ModelFacts facts;
  /// The Checkpoint::content_hash for which alone `auto` takes it; empty: any weights with the facts.
  std::string weights;
  std::string source;  ///< code base, file and commit; or how it was found
  std::string notes;
  bool is_automatic = true;  ///< whether `preset: auto` may choose it
  std::string method;
  ConfigTree editor;  ///< the section of a job, without line numbers
  std::string text;   ///< text of the file
};

/// Parses a preset. Throws: ConfigError with every problem; the editor's options are parsed as a job's are.
Preset parse_preset(const std::string& name, const std::string& text, const std::string& source);

/// Returns the presets that are embedded in the program, by name.
std::span<const Preset> built_in_presets();

/// Returns one of these presets. Throws: ConfigError that lists them if there is none of this name.
const Preset& find_preset(const std::string& name);

/// Returns the preset that `preset: auto` takes; null if there is none. `weights_hash` returns the model's
/// Checkpoint::content_hash; it is called only if a preset is for certain weights.
const Preset* find_automatic_preset(std::string_view method, const ModelFacts& facts,
                                    const std::function<std::string()>& weights_hash);

/// What presets need to know about a job before it is parsed.
struct JobSource {
  std::filesystem::path base;  ///< folder against which relative paths are resolved
  std::string name;            ///< name of the job in messages
};

/// The model that a job names.
struct NamedModel {
  std::filesystem::path path;
  std::vector<std::string> ignored_keys;  ///< keys of config.json that the job ignores
};

/// Throws: ConfigError.
NamedModel named_model(const ConfigTree& job, const JobSource& source);

/// Returns the preset that `preset: auto` takes for the job's model; null if there is none. Throws: ConfigError;
/// CheckpointError if the model's config.json cannot be read.
const Preset* find_automatic_preset(std::string_view method, const ConfigTree& job, const JobSource& source);

/// Returns the method of an `editor:`, which may leave it to its preset; empty if neither names one. Throws: as
/// apply_preset().
std::string method_of(const ConfigTree& editor, const JobSource& source);

/// Replaces `editor.preset` (auto, the name of an embedded preset, or a file: a path with a slash, or .yaml) by those
/// keys of the preset that the job lacks. Returns the preset; nullopt if the job names none. A preset for another model
/// is taken with a warning. Throws: ConfigError that lists the presets; CheckpointError if the model's config.json
/// cannot be read.
std::optional<Preset> apply_preset(ConfigTree& job, const JobSource& source);

}  // namespace lancet
