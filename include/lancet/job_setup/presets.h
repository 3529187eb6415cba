// Published (or tuned) options of a method for a model: data/presets/, part of the program. `editor.preset` in a job
// names one, or lets the model's config.json choose; the job's own keys win.
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

/// What of config.json tells models apart. Base and instruct models often agree in all of it: they share presets.
struct ModelFacts {
  std::string model_type;
  std::vector<std::pair<std::string, int64_t>> sizes;  ///< config.json's keys, always the same ones in one order
  bool operator==(const ModelFacts&) const = default;
};

ModelFacts facts_of(const ModelConfig& config);
/// A map with config.json's keys.
ConfigTree to_tree(const ModelFacts& facts);
/// "llama, hidden_size 4096, ...".
std::string to_text(const ModelFacts& facts);

struct Preset {
  std::string name;                 ///< the file's name, without .yaml
  std::vector<std::string> models;  ///< names of models with these facts, for people
  ModelFacts facts;
  std::string weights;  ///< `auto` takes it for these alone, by Checkpoint::content_hash; empty: for all with the facts
  std::string source;   ///< code base, file and commit; or how it was found
  std::string notes;
  bool is_automatic = true;  ///< whether `preset: auto` may choose it
  std::string method;
  ConfigTree editor;  ///< a job's section, without lines
  std::string text;   ///< the file
};

/// Throws: ConfigError with every problem; the editor's options are read as a job's are.
Preset parse_preset(const std::string& name, const std::string& text, const std::string& source);

/// Presets that the program carries, by name.
std::span<const Preset> built_in_presets();

/// One of those. Throws: ConfigError that lists them.
const Preset& find_preset(const std::string& name);

/// What `preset: auto` takes; null when there is none. `weights_hash`: the model's Checkpoint::content_hash, asked for
/// only where a preset is of certain weights.
const Preset* find_automatic_preset(std::string_view method, const ModelFacts& facts,
                                    const std::function<std::string()>& weights_hash);

/// A job before it is parsed, as far as presets need to know it.
struct JobSource {
  std::filesystem::path base;  ///< folder that relative paths start from
  std::string name;            ///< name in messages
};

/// What `preset: auto` takes for the job's model; null when there is none. Throws: ConfigError; CheckpointError when
/// its config.json cannot be read.
const Preset* find_automatic_preset(std::string_view method, const ConfigTree& job, const JobSource& source);

/// The method of an `editor:` that may leave it to its preset; empty when neither says it. Throws: as apply_preset.
std::string method_of(const ConfigTree& editor, const JobSource& source);

/// Replaces `editor.preset` (auto, the name of a preset that the program carries, or a file: a path with a slash, or
/// .yaml) by the keys of that preset that the job does not have. Returns what was taken; nullopt when the job names
/// none. A preset of another model is taken with a warning. Throws: ConfigError that lists what there is;
/// CheckpointError when the model's config.json cannot be read.
std::optional<Preset> apply_preset(ConfigTree& job, const JobSource& source);

}  // namespace lancet
