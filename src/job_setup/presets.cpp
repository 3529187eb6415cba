#include "lancet/job_setup/presets.h"

#include <algorithm>
#include <array>

#include "lancet/core/built_in_file.h"
#include "lancet/core/config_section.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/io/files.h"
#include "lancet/models/model_files.h"
#include "lancet/spec/job_spec.h"
#include "stored_projections.h"

namespace lancet {

std::span<const BuiltInFile> preset_files();  // made by CMake

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAuto = "auto";

struct Size {
  const char* key;  ///< key of config.json
  int64_t ModelConfig::*field;
};

constexpr std::array<Size, 7> kSizes{{{"hidden_size", &ModelConfig::d_model},
                                      {"intermediate_size", &ModelConfig::d_ffn},
                                      {"num_hidden_layers", &ModelConfig::n_layers},
                                      {"num_attention_heads", &ModelConfig::n_heads},
                                      {"num_key_value_heads", &ModelConfig::n_kv_heads},
                                      {"max_position_embeddings", &ModelConfig::max_positions},
                                      {"vocab_size", &ModelConfig::vocab_size}}};

ModelFacts parse_facts(ConfigSection section) {
  ModelFacts facts;
  facts.model_type = section.text("model_type");
  for (const Size& size : kSizes) facts.sizes.emplace_back(size.key, section.integer(size.key, {.min = 1}));
  section.finish();
  return facts;
}

/// `defaults` with everything in `own` over it; only maps are merged.
ConfigTree merged(ConfigTree defaults, const ConfigTree& own) {
  const auto is_map = [](const ConfigTree& tree) { return tree.kind == ConfigTree::Kind::kMap; };
  if (!is_map(defaults) || !is_map(own)) return own;
  defaults.line = own.line;
  for (const auto& [key, value] : own.entries) {
    const ConfigTree* below = defaults.find(key);
    defaults.set(key, below == nullptr ? value : merged(*below, value));
  }
  return defaults;
}

std::string list_text(std::span<const Preset> presets) {
  std::string text;
  for (const Preset& preset : presets) text += cat("\n  ", preset.name, " (", join(preset.models), ")");
  return text;
}

/// Throws: ConfigError; CheckpointError when its config.json cannot be read.
DescribedModel model_of_job(const ConfigTree& job, const JobSource& source) {
  ConfigProblems problems(source.name);
  ConfigSection section(job, "", problems);
  const fs::path model = section.path("model", source.base);
  const std::vector<std::string> ignored = section.texts("ignore_config_keys", std::vector<std::string>{});
  problems.throw_if_any();
  return describe_model(model, ignored);
}

const Preset* find_for(std::string_view method, const DescribedModel& model) {
  return find_automatic_preset(method, facts_of(model.config), [&]() -> std::string {
    try {
      return Checkpoint::open(model.folder).content_hash();
    } catch (const CheckpointError&) {
      return {};  // a folder without weights, as `lancet plan` takes it
    }
  });
}

/// ". NAME is of other weights: preset: NAME takes it all the same"; empty: none is that has these facts.
std::string other_weights_text(std::string_view method, const ModelFacts& facts) {
  for (const Preset& preset : built_in_presets())
    if (preset.is_automatic && preset.method == method && preset.facts == facts && !preset.weights.empty())
      return cat(". ", preset.name, " is of other weights of this shape: preset: ", preset.name,
                 " takes it all the same");
  return {};
}

const Preset& choose(const std::string& method, const DescribedModel& model) {
  if (const Preset* preset = find_for(method, model)) return *preset;
  const ModelFacts facts = facts_of(model.config);
  throw ConfigError(cat("editor.preset: auto: there is no preset of ", method, " for this model (", to_text(facts), ")",
                        other_weights_text(method, facts),
                        ". Leave preset out: the method's options then follow from the model; or find better ones with "
                        "lancet tune, or name the preset of a similar model. There are:",
                        list_text(built_in_presets())));
}

/// Whether `editor.preset` is a file rather than a name.
bool names_preset_file(std::string_view preset) {
  return preset.find('/') != std::string_view::npos || preset.ends_with(".yaml") || preset.ends_with(".json");
}

/// `preset` and `method` of an `editor:`.
struct PresetChoice {
  std::string name;    ///< empty: none
  fs::path file;       ///< empty: no file
  std::string method;  ///< may be empty

  Preset named() const {
    return file.empty() ? find_preset(name)
                        : parse_preset(file.stem().string(), read_text_file(file, "preset"), file.string());
  }
};

PresetChoice parse_choice(const ConfigTree& editor, const JobSource& source) {
  ConfigProblems problems(source.name);
  ConfigSection section(editor, "editor", problems);
  PresetChoice choice{section.text(EditorSpec::kPreset.key, ""), {}, section.text(EditorSpec::kMethod.key, "")};
  if (names_preset_file(choice.name)) choice.file = section.path(EditorSpec::kPreset.key, source.base);
  problems.throw_if_any();
  return choice;
}

}  // namespace

ModelFacts facts_of(const ModelConfig& config) {
  ModelFacts facts{std::string(config.family->model_types.front()), {}};
  for (const Size& size : kSizes) facts.sizes.emplace_back(size.key, config.*size.field);
  return facts;
}

ConfigTree to_tree(const ModelFacts& facts) {
  ConfigTree tree = ConfigTree::map();
  tree.set("model_type", ConfigTree::text(facts.model_type));
  for (const auto& [key, size] : facts.sizes) tree.set(key, ConfigTree::number(size));
  return tree;
}

std::string to_text(const ModelFacts& facts) {
  std::string text = facts.model_type;
  for (const auto& [key, size] : facts.sizes) text += cat(", ", key, " ", size);
  return text;
}

Preset parse_preset(const std::string& name, const std::string& text, const std::string& source) {
  ConfigTree tree = parse_config(text, source);
  ConfigProblems problems(source);
  ConfigSection section(tree, "", problems);
  Preset preset;
  preset.name = name;
  preset.text = text;
  preset.models = section.texts("models");
  preset.facts = parse_facts(section.section("config"));
  preset.weights = section.text("weights", "");
  preset.source = section.text("source");
  preset.notes = section.text("notes", "");
  preset.is_automatic = section.boolean("auto", true);
  section.raw("trials");  // a tuned preset's record
  ConfigSection editor = section.section("editor");
  make_editor(editor);
  section.finish();
  problems.throw_if_any();
  preset.editor = *tree.find("editor");
  preset.method = preset.editor.find("method")->scalar;
  forget_lines(preset.editor);
  return preset;
}

std::span<const Preset> built_in_presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> presets;
    for (const BuiltInFile& file : preset_files()) {
      const std::string name = fs::path(file.name).stem().string();
      presets.push_back(parse_preset(name, std::string(file.text), cat("preset ", name, " of this program")));
    }
    std::sort(presets.begin(), presets.end(), [](const Preset& a, const Preset& b) { return a.name < b.name; });
    return presets;
  }();
  return kPresets;
}

const Preset& find_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : built_in_presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const std::string near = nearest(name, names);
  throw ConfigError(cat("preset '", name, "': unknown.", near.empty() ? "" : cat(" Did you mean ", near, "?"),
                        " There are:", list_text(built_in_presets())));
}

const Preset* find_automatic_preset(std::string_view method, const ModelFacts& facts,
                                    const std::function<std::string()>& weights_hash) {
  for (const Preset& preset : built_in_presets()) {
    if (!preset.is_automatic || preset.method != method || preset.facts != facts) continue;
    if (preset.weights.empty() || preset.weights == weights_hash()) return &preset;
  }
  return nullptr;
}

const Preset* find_automatic_preset(std::string_view method, const ConfigTree& job, const JobSource& source) {
  return find_for(method, model_of_job(job, source));
}

std::string method_of(const ConfigTree& editor, const JobSource& source) {
  const PresetChoice choice = parse_choice(editor, source);
  if (!choice.method.empty() || choice.name.empty() || choice.name == kAuto) return choice.method;
  return choice.named().method;
}

std::optional<Preset> apply_preset(ConfigTree& job, const JobSource& source) {
  const ConfigTree* editor = job.find("editor");
  if (editor == nullptr || editor->find("preset") == nullptr) return std::nullopt;
  const PresetChoice choice = parse_choice(*editor, source);
  ConfigTree own = *editor;
  own.erase(EditorSpec::kPreset.key);
  if (choice.name.empty()) {  // preset: null
    job.set("editor", std::move(own));
    return std::nullopt;
  }
  if (choice.name == kAuto && choice.method.empty())
    throw ConfigError(cat(source.name,
                          ": editor.preset: auto chooses by model and method: expected editor.method "
                          "beside it"));
  const DescribedModel model = model_of_job(job, source);
  const ModelFacts facts = facts_of(model.config);
  Preset preset = choice.name == kAuto ? choose(choice.method, model) : choice.named();
  if (!choice.method.empty() && choice.method != preset.method)
    throw ConfigError(cat("editor.method: ", choice.method, ", but the preset ", preset.name, " is of ", preset.method,
                          ": remove one of them, or say preset: auto"));
  if (preset.facts != facts)
    log_warning(cat("preset ", preset.name, " is of ", join(preset.models), " (", to_text(preset.facts),
                    "), the model's config.json says ", to_text(facts)));
  ConfigTree options = preset.editor;
  drop_threshold(options, job);
  job.set("editor", merged(std::move(options), own));
  return preset;
}

}  // namespace lancet
