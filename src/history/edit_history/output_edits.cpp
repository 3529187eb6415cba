#include "lancet/edit_history/output_edits.h"

#include <map>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Returns the folder of the state in outputs of earlier versions.
fs::path state_folder(const fs::path& output) { return output / "state"; }

void check_beside(const StreamFacts& facts, const fs::path& output) {
  if (facts.owner.beside.empty()) return;  // the first version does not say it
  const std::string requests = read_text_file(output / "requests.jsonl", "requests");
  if (facts.owner.beside != ContentHash().add(requests).hex())
    throw CheckpointError(cat((output / "state").string(),
                              ": it was not written beside requests.jsonl: one of the two ",
                              "is another output's, or was changed: take both from where the output was made"));
}

EditHistory load_state_folder(const fs::path& output, const ModelConfig& config) {
  const fs::path folder = state_folder(output);
  const StreamFacts facts = read_stream_facts(folder);
  check_beside(facts, output);
  StreamState stream = load_stream(folder, facts.owner, config);
  RequestFileOptions own;
  own.format = "flat";
  BatchEntry entry;
  std::map<std::string, int64_t> places;
  for (EditRequest& request : load_request_file(output / "requests.jsonl", own).requests) {
    places[request.id] = static_cast<int64_t>(entry.edits.size());
    entry.edits.push_back({.request = std::move(request)});
  }
  for (const std::string& id : stream.request_ids) {
    if (!places.contains(id))
      throw CheckpointError(cat(folder.string(), ": request ", id, " is not in requests.jsonl beside it"));
    entry.columns.push_back(places.at(id));
  }
  // in that version, dense changes had the ids of all their requests
  if (!has_columns(stream.changes)) entry.columns.clear();
  EditHistory history({.weights = facts.owner.base_hash});
  entry.setting = history.journal().add_setting({.method = facts.owner.method, .editor = facts.editor});
  StateStep step{.replaced = std::move(stream.editor.tensors), .edits = stream.editor.edits};
  history.add(std::move(entry), {.changes = std::move(stream.changes), .systems = {}, .state = std::move(step)},
              config);
  return history;
}

}  // namespace

bool has_edits(const fs::path& output) {
  return find_journal(output) || fs::exists(state_folder(output) / "changes.safetensors");
}

EditHistory load_edits(const fs::path& output, const ModelConfig& config) {
  const std::optional<fs::path> found = find_journal(output);
  return found ? EditHistory::load(*found, config) : load_state_folder(output, config);
}

}  // namespace lancet
