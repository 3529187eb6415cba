#include "lancet/job_setup/imported_hparams.h"

#include <array>
#include <utility>

#include "hparams_rules.h"
#include "lancet/core/config_section.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/spec/job_spec.h"
#include "stored_projections.h"

namespace lancet {
namespace {

using Fate = ImportedKey::Fate;

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kAlgorithms{{{"MEMIT", "memit"},
                                                                                     {"MEMIT-FE", "memit"},
                                                                                     {"AlphaEdit", "alphaedit"},
                                                                                     {"NSE", "nse"},
                                                                                     {"ROME", "rome"},
                                                                                     {"R-ROME", "r-rome"},
                                                                                     {"EMMET", "emmet"},
                                                                                     {"PMET", "pmet"},
                                                                                     {"FT", "ft"},
                                                                                     {"ULTRAEDIT", "ultraedit"}}};

/// Keys that occur only in the files of one method. NSE's and EMMET's come first, because their files also have MEMIT's
/// keys.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTellingKeys{
    {{"neuron_threshold", "nse"},
     {"emmet_lambda", ""},
     {"nullspace_threshold", "alphaedit"},
     {"nll_loss_factor", "pmet"},
     {"inner_params", "ultraedit"},
     {"edit_modules", "ultraedit"},
     {"num_steps", "ft"},
     {"context_template_length_params", "rome"},
     {"mom2_update_weight", "memit"}}};

ConfigError unknown_method(const std::string& source, std::string_view what) {
  std::vector<std::string> known;
  for (const auto& [theirs, ours] : kAlgorithms) known.emplace_back(theirs);
  return ConfigError(cat(source, ": ", what, ": expected a file of ", join(known), ", or --method with lancet's name"));
}

std::string find_method(ConfigSection& file, const std::string& source) {
  if (file.has("alg_name")) {
    const ConfigTree* const given = file.raw("alg_name");
    if (given->kind != ConfigTree::Kind::kScalar)
      throw unknown_method(source, cat("alg_name: expected text, got ", excerpt(to_line(*given), 60)));
    const std::string name = excerpt(file.text("alg_name"), 60);
    for (const auto& [theirs, ours] : kAlgorithms)
      if (theirs == name) return std::string(ours);
    throw unknown_method(source, cat("alg_name: '", name, "'"));
  }
  for (const auto& [key, method] : kTellingKeys) {
    if (!file.has(key)) continue;
    if (method.empty())
      throw ConfigError(cat(source, ": has no alg_name, and keys that files of MEMIT and of EMMET share: say --method ",
                            "memit or --method emmet"));
    return std::string(method);
  }
  throw unknown_method(source, "no alg_name and no key that tells the method");
}

/// In these files three kinds of fine-tuning have the same name.
std::string tuned_method(ConfigSection& file) {
  if (file.text("objective_optimization", "prompt_last") == "target_new") return "ft-m";
  const ConfigTree* constraint = file.raw("norm_constraint");
  return constraint == nullptr || constraint->scalar == "false" ? "ft" : "ft-l";
}

KeyFate import_key(HparamsImport& import, const std::string& key) {
  const HparamsRule* rule = find_rule(key, import.method);
  const ConfigTree* value = import.file.raw(key);
  if (rule == nullptr) return {Fate::kUnknown, "unknown"};
  if (value == nullptr) return {Fate::kNotUsed, "has no value"};
  if (rule->map != nullptr) return rule->map(import, key);
  if (rule->to.empty()) return {Fate::kNotUsed, std::string(rule->why)};
  import.file.number(key, {});
  import.put(cat("editor.", rule->to), *value);
  return {Fate::kMapped, cat("editor.", rule->to)};
}

/// Leaves out a published threshold if there are stored projections: they were computed with it.
void leave_threshold_out(ConfigTree& job, std::vector<ImportedKey>& keys) {
  ConfigTree editor = *job.find(JobSpec::kEditor.key);
  if (!drop_threshold(editor, job)) return;
  job.set(std::string(JobSpec::kEditor.key), std::move(editor));
  for (ImportedKey& key : keys)
    if (key.what == cat("editor.", LayeredSpec::kNullSpaceBelow.key)) {
      key.fate = Fate::kNotUsed;
      key.what = "the stored projections were made with it";
    }
}

/// Checks the options with lancet's own parser, so that a job with them can run.
void check(const ConfigTree& job, const ModelConfig* model, const std::string& source) {
  const ResolvedEditor resolved = resolve_editor(*job.find("editor"), source);
  if (model != nullptr) resolved.editor->targets(*model);
}

}  // namespace

std::string_view fate_name(ImportedKey::Fate fate) {
  switch (fate) {
    case Fate::kMapped:
      return "mapped";
    case Fate::kSame:
      return "same";
    case Fate::kNotUsed:
      return "not used";
    case Fate::kUnknown:
      break;
  }
  return "unknown";
}

ImportedHparams import_hparams(const std::filesystem::path& path, const std::string& method, const ModelConfig* model) {
  const std::string source = path.string();
  const ConfigTree tree = load_config(path);
  ConfigProblems problems(source);
  ConfigSection file(tree, "", problems);
  problems.throw_if_any();
  HparamsImport import{std::filesystem::absolute(path).parent_path(), method, model, file};
  if (import.method.empty()) import.method = find_method(file, source);
  if (import.method == "ft") import.method = tuned_method(file);
  import.put("editor.method", ConfigTree::text(import.method));
  ImportedHparams imported;
  for (const auto& [key, value] : tree.entries) {
    KeyFate fate = import_key(import, key);
    imported.keys.push_back({key, excerpt(to_line(value), 60), fate.fate, std::move(fate.what)});
  }
  problems.throw_if_any();
  leave_threshold_out(import.job, imported.keys);
  check(import.job, model, source);
  imported.method = import.method;
  imported.job = std::move(import.job);
  return imported;
}

}  // namespace lancet
