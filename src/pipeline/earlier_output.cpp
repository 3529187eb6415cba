#include "lancet/pipeline/earlier_output.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/output_edits.h"
#include "lancet/job/dotted_key.h"
#include "lancet/job/renamed_keys.h"
#include "lancet/spec/editor_spec.h"

namespace lancet {
namespace {

std::string option_text(const ConfigTree& editor, std::string_view key) {
  const ConfigTree* value = editor.find(key);
  if (value == nullptr) return "nothing";
  ConfigTree alone = ConfigTree::map();
  alone.set(std::string(key), *value);
  std::string text = to_yaml(alone);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Whether the option is there and no number: auto, or what it is to go by.
bool is_chosen(const ConfigTree& editor, std::string_view key) {
  const ConfigTree* value = editor.find(key);
  return value != nullptr && (value->kind == ConfigTree::Kind::kMap || is_auto(*value));
}

void check_same_option(std::string_view key, const ConfigTree& earlier, const ConfigTree& now,
                       const std::string& where) {
  const std::string before = option_text(earlier, key), after = option_text(now, key);
  if (before != after)
    throw ConfigError(
        cat(where, "editor.", key, ": expected '", before, "' as there, got '", after, "': the state depends on it"));
}

/// What a state is made of, and what it has numbers of where the job left them to lancet.
void check_same_options(const ConfigTree& earlier, const ConfigTree& now, const std::string& where) {
  for (const Affects kind : {Affects::kState, Affects::kChosenState})
    for (const AnyOption& option : kEditorOptions) {
      const auto& [key, affects] = std::pair{base_of(option).key, base_of(option).affects};
      if (affects != kind) continue;
      if (kind == Affects::kState || (is_chosen(earlier, key) && is_chosen(now, key)))
        check_same_option(key, earlier, now, where);
    }
}

}  // namespace

std::string editor_options(const JobConfig& job) { return to_yaml(*job.resolved.find("editor")); }

EditHistory read_whole_history(const std::filesystem::path& folder, const ModelConfig& config, const std::string& where,
                               const std::string& otherwise) {
  if (!has_edits(folder))
    throw ConfigError(
        cat(where, "expected the output of lancet edit with its folder edits/ (output.state: true), found none"));
  EditHistory history = [&] {
    try {
      return load_edits(folder, config);
    } catch (const CheckpointError& error) {  // edits cannot be made again by themselves
      throw CheckpointError(
          cat(where, error.what(), "; take the folder edits/ from a copy of the output, or ", otherwise));
    }
  }();
  if (!history.has_solved())
    throw ConfigError(cat(where, "its edits/ has no folder solved/, which another job goes on with: it was written ",
                          "with output.state: false"));
  return history;
}

void check_goes_on(const Journal& journal, const JobConfig& job, const std::string& where) {
  const EditSetting& setting = journal.settings()[journal.batches().back().setting];
  if (setting.method != job.method)
    throw ConfigError(cat(where, "editor.method: expected ", setting.method, " as there, got ", job.method,
                          ": a state fits the method that made it"));
  const std::string earlier = "the earlier job's editor";
  check_same_options(options_with_present_names(parse_config(setting.editor, earlier), earlier),
                     parse_config(editor_options(job), "editor"), where);
}

void check_base(const EditHistory& history, const std::string& base_hash, const std::string& where) {
  const JournalBase& base = history.journal().base();
  if (base.weights != base_hash)
    throw ConfigError(cat(where, "the edits of another model: expected ", base.weights, ", got ", base_hash,
                          ": go on with the model that it was made from (", base.folder, ")"));
}

EarlierOutput::EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests, const ModelConfig& config)
    : where_(cat("continue_from: ", job.continue_from->string(), ": ")),
      history_(read_whole_history(*job.continue_from, config, where_, "edit all requests again without continue_from")),
      requests_(history_.journal().requests()) {
  const Journal& journal = history_.journal();
  if (journal.batches().empty()) throw ConfigError(cat(where_, "no edit stands in it"));
  check_goes_on(journal, job, where_);
  for (const EditRequest& request : requests)
    if (journal.has(request.id))
      throw ConfigError(cat(where_, "request ", request.id, ": one of this id was edited there already: expected ids ",
                            "that tell all requests apart: give this one another 'id'"));
}

const EditHistory& EarlierOutput::history(const std::string& base_hash) const {
  check_base(history_, base_hash, where_);
  return history_;
}

}  // namespace lancet
