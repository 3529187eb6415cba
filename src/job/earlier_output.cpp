#include "earlier_output.h"

#include <array>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// What a state is made by, besides the method.
constexpr std::array kStateOptions{"layers", "modules", "history", "blue", "norm_anchor"};
/// Of which the state has numbers where the job left them to lancet.
constexpr std::array kChosenOptions{"covariance_weight", "ridge"};

std::string option_text(const ConfigTree& editor, const char* key) {
  const ConfigTree* value = editor.find(key);
  if (value == nullptr) return "nothing";
  ConfigTree alone = ConfigTree::map();
  alone.set(key, *value);
  std::string text = to_yaml(alone);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Whether the option is there and no number: auto, or what it is to go by.
bool is_chosen(const ConfigTree& editor, const char* key) {
  const ConfigTree* value = editor.find(key);
  return value != nullptr && (value->kind == ConfigTree::Kind::kMap || value->scalar == "auto");
}

void check_same_option(const char* key, const ConfigTree& earlier, const ConfigTree& now, const std::string& where) {
  const std::string before = option_text(earlier, key), after = option_text(now, key);
  if (before != after)
    throw ConfigError(
        cat(where, "editor.", key, ": expected '", before, "' as there, got '", after, "': the state depends on it"));
}

}  // namespace

std::filesystem::path stream_folder(const std::filesystem::path& output) { return output / "state"; }

std::string editor_options(const JobConfig& job) { return to_yaml(*job.resolved.find("editor")); }

EarlierOutput::EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests)
    : folder_(*job.continue_from), method_(job.method) {
  const std::string where = cat("continue_from: ", folder_.string(), ": ");
  if (!std::filesystem::exists(stream_folder(folder_) / "changes.safetensors"))
    throw ConfigError(
        cat(where, "expected the output of lancet edit with its folder state/ (output.state: true), ", "found none"));
  const StreamFacts facts = read_stream_facts(stream_folder(folder_));
  if (facts.owner.method != method_)
    throw ConfigError(cat(where, "editor.method: expected ", facts.owner.method, " as there, got ", method_,
                          ": a state fits the method that made it"));
  const ConfigTree earlier = parse_config(facts.editor, "the earlier job's editor"),
                   now = parse_config(editor_options(job), "editor");
  for (const char* key : kStateOptions) check_same_option(key, earlier, now, where);
  for (const char* key : kChosenOptions)
    if (is_chosen(earlier, key) && is_chosen(now, key)) check_same_option(key, earlier, now, where);
  RequestFileOptions own;
  own.format = "flat";
  requests_ = load_request_file(folder_ / "requests.jsonl", own).requests;
  std::set<std::string> ids;
  for (const EditRequest& request : requests_) ids.insert(request.id);
  for (const EditRequest& request : requests)
    if (ids.contains(request.id))
      throw ConfigError(cat(where, "request ", request.id, ": one of this id was edited there already: expected ids ",
                            "that tell all requests apart: give this one another 'id'"));
}

StreamState EarlierOutput::load(const std::string& base_hash, const ModelConfig& config) const {
  return load_stream(stream_folder(folder_), {method_, base_hash}, config);
}

}  // namespace lancet
