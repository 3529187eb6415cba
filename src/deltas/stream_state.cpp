#include "lancet/deltas/stream_state.h"

#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/named_changes.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr SealedFormat kChangesFormat{"lancet-changes-2", /*unsealed=*/"lancet-changes-1"};

fs::path state_file(const fs::path& folder) { return folder / "state.safetensors"; }
fs::path changes_file(const fs::path& folder) { return folder / "changes.safetensors"; }

SealedFile open_changes(const fs::path& folder) { return SealedFile::open(changes_file(folder), kChangesFormat); }

/// Collective: root's tensors on every rank's host.
NamedTensors share(NamedTensors named, Communicator& communicator) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  names = broadcast_texts(communicator, names);
  named.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    named[i] = {names[i], communicator.broadcast(named[i].second, Placement::host())};
  return named;
}

}  // namespace

bool has_columns(const std::vector<WeightChanges>& changes) {
  return std::ranges::any_of(changes, [](const WeightChanges& weight) {
    return std::ranges::any_of(weight.deltas,
                               [](const WeightDelta& delta) { return std::holds_alternative<LowRankDelta>(delta); });
  });
}

StreamFacts read_stream_facts(const fs::path& folder) {
  const SealedFile file = open_changes(folder);
  return {{file.fact("method"), file.fact("base_hash"), file.content_hash().empty() ? "" : file.fact("beside")},
          file.fact("editor")};
}

StreamState load_stream(const fs::path& folder, const StateOwner& owner, const ModelConfig& config) {
  const SealedFile file = open_changes(folder);
  check_owner(file, owner);
  StreamState stream;
  stream.changes = to_changes(load_tensors(file), config);
  try {
    stream.request_ids = parse_strict_json(file.fact("requests")).get<std::vector<std::string>>();
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(file.path().string(), ": requests: expected a list of ids: ", problem.what()));
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(cat(file.path().string(), ": requests: expected a list of ids: ", error.what()));
  }
  stream.editor = load_state(state_file(folder), {owner.method, owner.base_hash, file.content_hash()});
  return stream;
}

void share_stream(StreamState& stream, const ModelConfig& config, Communicator& communicator) {
  if (communicator.size() == 1) return;
  stream.request_ids = broadcast_texts(communicator, stream.request_ids);
  stream.editor.edits = broadcast_numbers(communicator, {stream.editor.edits}).front();
  const NamedTensors state = share({stream.editor.tensors.begin(), stream.editor.tensors.end()}, communicator);
  stream.editor.tensors = {state.begin(), state.end()};
  stream.changes = to_changes(share(to_named(stream.changes, config), communicator), config);
}

std::vector<WeightChanges> changes_of(std::span<const WeightTransaction::Entry> entries) {
  std::vector<WeightChanges> changes;
  for (const WeightTransaction::Entry& entry : entries) changes.push_back({entry.id, entry.deltas});
  return changes;
}

void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction) {
  for (const WeightChanges& weight : changes) {
    const at::Device device = model.placement().solve_device(weight.id.layer);
    for (const WeightDelta& delta : weight.deltas) transaction.apply(weight.id, moved_to(delta, device));
  }
}

}  // namespace lancet
