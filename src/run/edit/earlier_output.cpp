#include "earlier_output.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/spec/editor_spec.h"
#include "output_edits.h"

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

EditHistory read_history(const std::filesystem::path& folder, const ModelConfig& config, const std::string& where) {
  if (!has_edits(folder))
    throw ConfigError(
        cat(where, "expected the output of lancet edit with its folder edits/ (output.state: true), found none"));
  EditHistory history = [&] {
    try {
      return load_edits(folder, config);
    } catch (const CheckpointError& error) {  // edits cannot be made again by themselves
      throw CheckpointError(cat(where, error.what(), "; take the folder edits/ from a copy of the output, or edit all ",
                                "requests again without continue_from"));
    }
  }();
  if (!history.has_solved())
    throw ConfigError(cat(where, "its edits/ has no folder solved/, which another job goes on with: it was written ",
                          "with output.state: false"));
  return history;
}

}  // namespace

std::string editor_options(const JobConfig& job) { return to_yaml(*job.resolved.find("editor")); }

EarlierOutput::EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests, const ModelConfig& config)
    : folder_(*job.continue_from),
      history_(read_history(folder_, config, cat("continue_from: ", folder_.string(), ": "))),
      requests_(history_.requests()) {
  const std::string where = cat("continue_from: ", folder_.string(), ": ");
  const Journal& journal = history_.journal();
  if (journal.batches().empty()) throw ConfigError(cat(where, "no edit stands in it"));
  const EditSetting& setting = journal.settings()[journal.batches().back().setting];
  if (setting.method != job.method)
    throw ConfigError(cat(where, "editor.method: expected ", setting.method, " as there, got ", job.method,
                          ": a state fits the method that made it"));
  const ConfigTree earlier = parse_config(setting.editor, "the earlier job's editor"),
                   now = parse_config(editor_options(job), "editor");
  check_same_options(earlier, now, where);
  for (const EditRequest& request : requests)
    if (journal.has(request.id))
      throw ConfigError(cat(where, "request ", request.id, ": one of this id was edited there already: expected ids ",
                            "that tell all requests apart: give this one another 'id'"));
}

const EditHistory& EarlierOutput::history(const std::string& base_hash) const {
  const std::string& base = history_.journal().base().weights;
  if (base != base_hash)
    throw ConfigError(cat("continue_from: ", folder_.string(), ": the edits of another model: expected ", base,
                          ", got ", base_hash, ": go on with the model that it was made from (",
                          history_.journal().base().folder, ")"));
  return history_;
}

}  // namespace lancet
