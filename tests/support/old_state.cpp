#include "old_state.h"

#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/core/hash.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

namespace lancet::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char *kStateName = "state.safetensors", *kChangesName = "changes.safetensors";

/// What check_owner() looks for.
Metadata owner_facts(const StateOwner& owner) {
  return {{"method", owner.method}, {"base_hash", owner.base_hash}, {"beside", owner.beside}};
}

NamedTensors named_state(const EditorState& state) { return {state.tensors.begin(), state.tensors.end()}; }

Metadata facts_of(const StreamState& stream, const StreamFacts& facts) {
  return {{"editor", facts.editor}, {"requests", nlohmann::json(stream.request_ids).dump()}};
}

void write_unsealed(const fs::path& path, const char* format, const NamedTensors& tensors, const StateOwner& owner,
                    Metadata facts) {
  facts.insert({{"format", format}, {"method", owner.method}, {"base_hash", owner.base_hash}});
  NamedTensors host;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    host.emplace_back(name, tensor.contiguous());
    sources.push_back(to_source(name, host.back().second));
  }
  write_safetensors(path, sources, facts);
}

/// The request of each column; dense changes have none: they were of all requests.
std::vector<std::string> ids_of(const Journal& journal) {
  std::vector<std::string> ids;
  for (const BatchEntry& batch : journal.batches()) {
    if (batch.columns.empty())
      for (const EditRecord& edit : batch.edits) ids.push_back(edit.request.id);
    for (const int64_t column : batch.columns) ids.push_back(batch.edits[static_cast<size_t>(column)].request.id);
  }
  return ids;
}

}  // namespace

void save_state(const fs::path& path, const EditorState& state, const StateOwner& owner) {
  Metadata facts = owner_facts(owner);
  facts["edits"] = std::to_string(state.edits);
  write_tensors(path, {"lancet-state-2"}, named_state(state), facts);
}

void save_stream(const fs::path& folder, const StreamState& stream, const StreamFacts& facts,
                 const ModelConfig& config) {
  Metadata own = owner_facts(facts.owner);
  own.merge(facts_of(stream, facts));
  const std::string hash =
      write_tensors(folder / kChangesName, {"lancet-changes-2"}, to_named(stream.changes, config), own);
  save_state(folder / kStateName, stream.editor, {facts.owner.method, facts.owner.base_hash, hash});
}

void save_unsealed_stream(const fs::path& folder, const StreamState& stream, const StreamFacts& facts,
                          const ModelConfig& config) {
  write_unsealed(folder / kChangesName, "lancet-changes-1", to_named(stream.changes, config), facts.owner,
                 facts_of(stream, facts));
  write_unsealed(folder / kStateName, "lancet-state-1", named_state(stream.editor), facts.owner,
                 {{"edits", std::to_string(stream.editor.edits)}});
}

void make_old_output(const fs::path& output, const EditorState& fresh, const ModelConfig& config, OldFormat format) {
  const EditHistory history = EditHistory::load(output / kEditsFolder, config);
  const Journal& journal = history.journal();
  const EditSetting& setting = journal.settings()[journal.batches().back().setting];
  const StreamState stream{history.state(fresh), history.changes(), ids_of(journal)};
  StreamFacts facts{{setting.method, journal.base().weights}, setting.editor};
  const fs::path folder = output / "state";
  make_folders(folder);
  if (format == OldFormat::kSealed) {
    facts.owner.beside = ContentHash().add(read_text_file(output / "requests.jsonl", "test")).hex();
    save_stream(folder, stream, facts, config);
  } else {
    save_unsealed_stream(folder, stream, facts, config);
  }
  fs::remove_all(output / kEditsFolder);
}

}  // namespace lancet::testing
