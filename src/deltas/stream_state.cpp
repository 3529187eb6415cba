#include "lancet/deltas/stream_state.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "delta_shape.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr SealedFormat kChangesFormat{"lancet-changes-2", /*unsealed=*/"lancet-changes-1"};

fs::path state_file(const fs::path& folder) { return folder / "state.safetensors"; }
fs::path changes_file(const fs::path& folder) { return folder / "changes.safetensors"; }

NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config) {
  NamedTensors named;
  for (const WeightChanges& weight : changes) {
    for (size_t i = 0; i < weight.deltas.size(); ++i) {
      const std::string name = cat(weight_name(config, weight.id), "/", i, "/");
      if (const auto* low_rank = std::get_if<LowRankDelta>(&weight.deltas[i])) {
        named.emplace_back(name + "left", low_rank->left_OR);
        named.emplace_back(name + "right", low_rank->right_RI);
      } else {
        named.emplace_back(name + "full", std::get<DenseDelta>(weight.deltas[i]).full_OI);
      }
    }
  }
  return named;
}

/// The inverse of to_named. Throws: CheckpointError for what it cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config) {
  std::map<std::string, WeightSpec> specs;
  for (const WeightSpec& spec : weight_table(config)) specs[spec.name] = spec;
  std::vector<WeightChanges> changes;
  const auto refuse = [](const std::string& name) {
    throw CheckpointError(
        cat(name, ": expected a change of one of the model's weights, of its shape, complete and in its order"));
  };
  for (size_t i = 0; i < named.size(); ++i) {
    const auto& [name, tensor] = named[i];
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() != 3 || !specs.contains(parts[0])) refuse(name);
    const WeightSpec& spec = specs.at(parts[0]);
    if (changes.empty() || changes.back().id != spec.id) changes.push_back({spec.id, {}});
    std::vector<WeightDelta>& deltas = changes.back().deltas;
    if (parts[1] != std::to_string(deltas.size())) refuse(name);
    if (parts[2] == "full") {
      deltas.emplace_back(DenseDelta{tensor});
    } else if (parts[2] == "left" && i + 1 < named.size() &&
               named[i + 1].first == cat(parts[0], "/", parts[1], "/right")) {
      deltas.emplace_back(LowRankDelta{tensor, named[++i].second});
    } else {
      refuse(name);
    }
    if (!fits_weight(deltas.back(), spec.shape)) refuse(name);
  }
  return changes;
}

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

void save_stream(const fs::path& folder, const StreamState& stream, const StreamFacts& facts,
                 const ModelConfig& config) {
  Metadata own = owner_facts(facts.owner);
  own["editor"] = facts.editor;
  own["requests"] = nlohmann::json(stream.request_ids).dump();
  const std::string hash = write_tensors(changes_file(folder), kChangesFormat, to_named(stream.changes, config), own);
  save_state(state_file(folder), stream.editor, {facts.owner.method, facts.owner.base_hash, hash});
}

StreamFacts read_stream_facts(const fs::path& folder) {
  const SealedFile file = open_changes(folder);
  return {{file.fact("method"), file.fact("base_hash"), file.content_hash().empty() ? "" : file.fact("beside")},
          file.fact("editor")};
}

void check_stream(const fs::path& folder) {
  open_changes(folder).check();
  check_state(state_file(folder));
}

StreamState load_stream(const fs::path& folder, const StateOwner& owner, const ModelConfig& config) {
  const SealedFile file = open_changes(folder);
  check_owner(file, owner);
  StreamState stream;
  stream.changes = to_changes(load_tensors(file), config);
  try {
    stream.request_ids = nlohmann::json::parse(file.fact("requests")).get<std::vector<std::string>>();
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

std::vector<WeightChanges> changes_of(const WeightTransaction& transaction) {
  std::vector<WeightChanges> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) changes.push_back({entry.id, entry.deltas});
  return changes;
}

void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction) {
  for (const WeightChanges& weight : changes) {
    const at::Device device = model.placement().solve_device(weight.id.layer);
    for (const WeightDelta& delta : weight.deltas) {
      if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
        transaction.apply(weight.id, LowRankDelta{low_rank->left_OR.to(device), low_rank->right_RI.to(device)});
      else
        transaction.apply(weight.id, DenseDelta{std::get<DenseDelta>(delta).full_OI.to(device)});
    }
  }
}

}  // namespace lancet
