#include "earlier_output.h"

#include <set>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/job/dotted_key.h"
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

/// A state cannot be made again by itself.
template <typename Read>
auto with_remedy(const std::string& where, const Read& read) {
  try {
    return read();
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(where, error.what(),
                              "; take the folder state/ from a copy of the output, or edit all requests ",
                              "again without continue_from"));
  }
}

}  // namespace

std::filesystem::path stream_folder(const std::filesystem::path& output) { return output / "state"; }

std::string stream_owner(const std::string& requests) { return ContentHash().add(requests).hex(); }

std::string editor_options(const JobConfig& job) { return to_yaml(*job.resolved.find("editor")); }

EarlierOutput::EarlierOutput(const JobConfig& job, std::span<const EditRequest> requests)
    : folder_(*job.continue_from), owner_{job.method, ""} {
  const std::string where = cat("continue_from: ", folder_.string(), ": ");
  if (!std::filesystem::exists(stream_folder(folder_) / "changes.safetensors"))
    throw ConfigError(
        cat(where, "expected the output of lancet edit with its folder state/ (output.state: true), ", "found none"));
  const StreamFacts facts = with_remedy(where, [&] {
    check_stream(stream_folder(folder_));
    return read_stream_facts(stream_folder(folder_));
  });
  if (facts.owner.method != owner_.method)
    throw ConfigError(cat(where, "editor.method: expected ", facts.owner.method, " as there, got ", owner_.method,
                          ": a state fits the method that made it"));
  const ConfigTree earlier = parse_config(facts.editor, "the earlier job's editor"),
                   now = parse_config(editor_options(job), "editor");
  check_same_options(earlier, now, where);
  owner_.beside = facts.owner.beside.empty()  // of an earlier version, which does not tell
                      ? ""
                      : stream_owner(read_text_file(folder_ / "requests.jsonl", "continue_from"));
  if (facts.owner.beside != owner_.beside)
    throw CheckpointError(cat(where,
                              "state/ was not written beside requests.jsonl: one of the two is another output's, ",
                              "or was changed: take both from where the output was made"));
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
  return with_remedy(cat("continue_from: ", folder_.string(), ": "), [&] {
    return load_stream(stream_folder(folder_), {owner_.method, base_hash, owner_.beside}, config);
  });
}

}  // namespace lancet
