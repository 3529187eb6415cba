#include "lancet/job_setup/parse_job.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "automatic_editor.h"
#include "lancet/core/config_tree.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/eval/protocol.h"
#include "lancet/job/dotted_key.h"
#include "lancet/job_setup/presets.h"
#include "lancet/models/model_files.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

// `compare:` of a job: sections for methods that the command line names, and what a section takes from the job's
// editor.

constexpr const char* kMethodKey = "method";
constexpr const char* kPresetKey = "preset";

bool is_method(const std::string& name) {
  return std::any_of(editor_table().begin(), editor_table().end(),
                     [&](const EditorRow& row) { return row.name == name; });
}

bool has_map(const ConfigTree& job, const char* key) {
  const ConfigTree* section = job.find(key);
  return section != nullptr && section->kind == ConfigTree::Kind::kMap;
}

/// Returns the method of the job's editor; empty if there is no editor, or it names no method.
std::string edited_method(const ConfigTree& job, const JobSource& source) {
  return has_map(job, "editor") ? method_of(*job.find("editor"), source) : "";
}

/// Returns the methods to compare by default, beginning with the editor's own.
std::vector<std::string> usual_methods(const std::string& own) {
  std::vector<std::string> methods;
  if (!own.empty()) methods.push_back(own);
  for (const std::string name : kComparedMethods)
    if (name != own) methods.push_back(name);
  return methods;
}

bool is_published(const std::string& method, const ConfigTree& job, const JobSource& source) {
  return find_automatic_preset(method, job, source) != nullptr;
}

ConfigTree section_of(const std::string& method, const ConfigTree& job, const JobSource& source) {
  ConfigTree section = ConfigTree::map();
  section.set(kMethodKey, ConfigTree::text(method));
  if (method != edited_method(job, source) && is_published(method, job, source))
    section.set(kPresetKey, ConfigTree::text("auto"));
  return section;
}

/// Returns `section` with what it takes from `editor`. Both are maps.
ConfigTree inherited(ConfigTree section, const ConfigTree& editor, const ConfigTree& job, const JobSource& source) {
  const ConfigTree* method = section.find(kMethodKey);
  if (method == nullptr || method->kind != ConfigTree::Kind::kScalar || section.find(kPresetKey) != nullptr)
    return section;
  const bool is_same = method->scalar == edited_method(job, source);
  if (is_same && section.entries.size() == 1) {
    section = editor;
    section.set(kMethodKey, *method);
    return section;
  }
  const ConfigTree* preset = editor.find(kPresetKey);
  if (preset == nullptr || preset->kind != ConfigTree::Kind::kScalar) return section;
  if (is_same || (preset->scalar == "auto" && is_published(method->scalar, job, source)))
    section.set(kPresetKey, *preset);
  return section;
}

/// Adds a section for each of `names` that is the name of a method and not a label of the job. If the job has no
/// `compare:` and no names are given, adds the editor's method and a few others. Other names are left for the check of
/// labels to refuse. An added section has the published options of its method, if there are some for the model.
void add_compared(ConfigTree& job, std::span<const std::string> names, const JobSource& source) {
  if (job.kind != ConfigTree::Kind::kMap) return;
  const ConfigTree* given = job.find("compare");
  if (given != nullptr && given->kind != ConfigTree::Kind::kMap) return;  // the parser of the job reports it
  std::vector<std::string> wanted(names.begin(), names.end());
  if (given == nullptr && wanted.empty()) {
    wanted = usual_methods(edited_method(job, source));
    log_line(cat("compare  ", join(wanted), ": the job has no section compare:; --methods names others"));
  }
  ConfigTree sections = given == nullptr ? ConfigTree::map() : *given;
  for (const std::string& name : wanted)
    if (is_method(name) && sections.find(name) == nullptr) sections.set(name, section_of(name, job, source));
  if (!sections.entries.empty()) job.set("compare", std::move(sections));
}

/// A section that says only its method becomes the job's editor if that has the same method. A section without `preset`
/// takes the editor's preset if it is of its method, or if it is `auto` and there is a published one for the model.
void inherit_editor(ConfigTree& job, const JobSource& source) {
  if (!has_map(job, "compare") || !has_map(job, "editor")) return;
  ConfigTree sections = *job.find("compare");
  const ConfigTree editor = *job.find("editor");
  for (auto& [label, section] : sections.entries)
    if (section.kind == ConfigTree::Kind::kMap) section = inherited(std::move(section), editor, job, source);
  job.set("compare", std::move(sections));
}

std::optional<ReadEditor> read_editor(ConfigSection& section) {
  std::shared_ptr<const Editor> editor = resolve_editor(section);
  if (editor == nullptr) return std::nullopt;
  const EditorNeeds needs = editor->needs();
  const MethodNeeds of_job{.statistics = needs.statistics,
                           .null_space = needs.null_space.has_value(),
                           .curvature = needs.curvature,
                           .values = editor->values() != nullptr,
                           .entities = needs.entity_weight > 0};
  return ReadEditor{of_job, std::move(editor)};
}

JobTables tables_of_program() {
  JobTables tables{.read_editor = read_editor};
  for (const ProtocolRow& row : protocol_table()) tables.protocols.push_back({row.name, row.metrics, row.no_shares});
  return tables;
}

}  // namespace

const JobTables& job_tables() {
  static const JobTables kTables = tables_of_program();
  return kTables;
}

ResolvedJob parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                      JobPurpose purpose) {
  ParsedJob parsed = parse_job(tree, base, source, purpose, job_tables());
  return {std::move(parsed.config), std::move(parsed.editor)};
}

namespace {

/// Returns a job that has only the overrides.
ConfigTree overrides_alone(std::span<const std::string> overrides) {
  ConfigTree given = ConfigTree::map();
  for (const std::string& assignment : overrides) apply_override(given, assignment);
  return given;
}

/// The options of one method say nothing about another one. If an override names another method than `editor`, all
/// options except `preset: auto` are removed. Returns whether they were.
bool begin_other_method(ConfigTree& editor, const ConfigTree* given, const JobSource& source) {
  const ConfigTree* method = given == nullptr ? nullptr : given->find("method");
  if (method == nullptr || editor.kind != ConfigTree::Kind::kMap) return false;
  const std::string before = method_of(editor, source);
  if (before.empty() || before == method->scalar) return false;
  std::vector<std::string> dropped;
  std::erase_if(editor.entries, [&](const auto& entry) {
    if (entry.first == "method" || (entry.first == "preset" && entry.second.scalar == "auto")) return false;
    dropped.push_back(entry.first);
    return true;
  });
  if (!dropped.empty())
    log_line(cat("editor  ", method->scalar, " instead of ", before, ": ", before,
                 "'s options are left out: ", join(dropped)));
  return true;
}

bool begin_other_methods(ConfigTree& job, const ConfigTree& given, const JobSource& source) {
  const auto changed = [&](ConfigTree& place, const ConfigTree& given_there, const std::string& key) {
    const ConfigTree* editor = place.find(key);
    if (editor == nullptr) return false;
    ConfigTree begun = *editor;
    const bool is_other = begin_other_method(begun, given_there.find(key), source);
    place.set(key, std::move(begun));
    return is_other;
  };
  const ConfigTree *compared = job.find("compare"), *given_compared = given.find("compare");
  if (compared != nullptr && given_compared != nullptr) {
    ConfigTree sections = *compared;
    for (const auto& [label, unread] : compared->entries) changed(sections, *given_compared, label);
    job.set("compare", std::move(sections));
  }
  return changed(job, given, "editor");
}

/// Chooses options if the job names none: the published ones, if there are any for the model, else the automatic ones
/// of the method. Returns whether they are automatic.
bool choose_options(ConfigTree& job, const JobSource& source) {
  const ConfigTree* given = job.find("editor");
  ConfigTree editor = given == nullptr ? ConfigTree::map() : *given;
  if (editor.kind != ConfigTree::Kind::kMap) return false;
  const ConfigTree* preset = editor.find("preset");
  const bool wants_none = preset != nullptr && preset->kind == ConfigTree::Kind::kNull;
  if (preset != nullptr && !wants_none) return false;
  if (editor.find("method") == nullptr) editor.set("method", ConfigTree::text(kDefaultMethod));
  const bool are_published =
      !wants_none && find_automatic_preset(editor.find("method")->scalar, job, source) != nullptr;
  if (are_published) {
    editor.set("preset", ConfigTree::text("auto"));
  } else {
    choose_chat_context(editor, job, source);
    choose_entities(editor, job);
  }
  job.set("editor", std::move(editor));
  return !are_published;
}

/// Applies the presets that the editor, or an editor to compare, names.
void apply_presets(ConfigTree& job, const JobSource& source) {
  const auto apply = [&](ConfigTree& one) {
    const ConfigTree* name = find_dotted(one, "editor.preset");
    const bool is_chosen = name != nullptr && name->scalar == "auto";
    if (const std::optional<Preset> preset = apply_preset(one, source))
      log_line(
          cat("preset  ", preset->name, ": ", preset->source, is_chosen ? " (editor.preset: null goes without)" : ""));
  };
  apply(job);
  const ConfigTree* compared = job.find("compare");
  if (compared == nullptr || compared->kind != ConfigTree::Kind::kMap) return;
  ConfigTree sections = *compared;
  for (auto& [label, section] : sections.entries) {
    ConfigTree one = job;
    one.set("editor", section);
    apply(one);
    section = *one.find("editor");
  }
  job.set("compare", std::move(sections));
}

}  // namespace

void apply_model_defaults(ConfigTree& job, const std::filesystem::path& base) {
  const ConfigTree* model = job.find("model");
  if (model == nullptr || model->kind != ConfigTree::Kind::kScalar) return;  // the parser of the job reports it
  ConfigProblems ignored("");
  ConfigSection section(job, "", ignored);
  const std::filesystem::path folder = read(section, JobSpec::kModel, base);
  const std::filesystem::path file = folder / "lancet.yaml";
  if (!std::filesystem::exists(file)) return;
  ConfigTree defaults = load_config(file);
  for (const char* name : {"editor", "statistics"}) {
    const ConfigTree* given = defaults.find(name);
    if (given == nullptr || job.find(name) != nullptr) continue;
    keep_folder(job.set(name, *given), folder);
  }
}

CompletedJob complete_job(ConfigTree tree, JobSource source, std::span<const std::string> overrides,
                          EditorChoice choice, std::span<const std::string> compared) {
  // The model decides which defaults apply, so an override of the model is applied first. The other overrides change
  // the defaults, too.
  const ConfigTree given = overrides_alone(overrides);
  if (const ConfigTree* model = given.find("model"); model != nullptr && tree.kind == ConfigTree::Kind::kMap)
    tree.set("model", *model);
  apply_model_defaults(tree, source.base);
  bool has_options = tree.find("editor") != nullptr;
  if (begin_other_methods(tree, given, source)) has_options = false;
  for (const std::string& assignment : overrides) apply_override(tree, assignment);
  const bool is_automatic = choice == EditorChoice::kOpen && !has_options && choose_options(tree, source);
  if (choice == EditorChoice::kCompared) add_compared(tree, compared, source);
  inherit_editor(tree, source);
  apply_presets(tree, source);
  return {std::move(tree), std::move(source), is_automatic};
}

std::vector<std::string> overrides_for_method(std::span<const std::string> overrides, std::string_view method) {
  std::vector<std::string> kept;
  for (const std::string& assignment : overrides)
    if (assignment.substr(0, assignment.find_first_of(".=")) != JobSpec::kEditor.key) kept.push_back(assignment);
  kept.push_back(cat(JobSpec::kEditor.key, ".", EditorSpec::kMethod.key, "=", method));
  return kept;
}

void tell_defaults(const CompletedJob& completed, const ResolvedJob& job) {
  if (completed.is_automatic) {
    const ModelConfig config = describe_model(job.model, job.ignore_config_keys).config;
    std::vector<int64_t> layers = target_layers(*job.editor, config);
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    const std::vector<int64_t> value_layers = job.editor->value_layers(config);
    const ContextOptions* contexts = job.editor->contexts();
    log_line(
        cat("editor  ", job.method, " with automatic options, layers ", shape_text(layers),
            value_layers.empty() ? "" : cat(", values at ", shape_text(value_layers)),
            contexts != nullptr && !contexts->chat.empty() ? ", prompts also as user messages (contexts.chat)" : "",
            job.needs.entity_weight > 0 ? ", other subjects in the statistics (entities)" : "",
            ": no published ones are known for this model"));
  }
  const ConfigTree* statistics = completed.tree.find("statistics");
  const bool names_text = statistics != nullptr && statistics->find("corpus") != nullptr;
  if (job.needs.statistics && job.statistics->from == StatisticsFrom::kSelf && !names_text)
    log_line("statistics  no text is given: the model writes its own (statistics.corpus: self)");
}

}  // namespace lancet
