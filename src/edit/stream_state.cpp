#include "lancet/edit/stream_state.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/collectives.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

constexpr std::string_view kFormat = "lancet-changes-1";

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
  std::map<std::string, WeightId> ids;
  for (const WeightSpec& spec : weight_table(config)) ids[spec.name] = spec.id;
  std::vector<WeightChanges> changes;
  const auto refuse = [](const std::string& name) {
    throw CheckpointError(cat(name, ": expected a change of one of the model's weights, complete and in its order"));
  };
  for (size_t i = 0; i < named.size(); ++i) {
    const auto& [name, tensor] = named[i];
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() != 3 || !ids.contains(parts[0])) refuse(name);
    const WeightId id = ids.at(parts[0]);
    if (changes.empty() || changes.back().id != id) changes.push_back({id, {}});
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
  }
  return changes;
}

const std::string& fact(const SafetensorsReader& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  if (found == file.metadata().end())
    throw CheckpointError(cat(file.path().string(), ": expected '", name, "' in its metadata: not the changes of a ",
                              "stream of edits, or damaged"));
  return found->second;
}

SafetensorsReader open_changes(const fs::path& folder) {
  SafetensorsReader file = SafetensorsReader::open(changes_file(folder));
  if (fact(file, "format") != kFormat)
    throw CheckpointError(cat(file.path().string(), ": expected format ", kFormat, ", got ", fact(file, "format")));
  return file;
}

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
  write_tensors(changes_file(folder), to_named(stream.changes, config),
                {{"format", std::string(kFormat)},
                 {"base_hash", facts.owner.base_hash},
                 {"method", facts.owner.method},
                 {"editor", facts.editor},
                 {"requests", nlohmann::json(stream.request_ids).dump()}});
  save_state(state_file(folder), stream.editor, facts.owner);
}

StreamFacts read_stream_facts(const fs::path& folder) {
  const SafetensorsReader file = open_changes(folder);
  return {{fact(file, "method"), fact(file, "base_hash")}, fact(file, "editor")};
}

StreamState load_stream(const fs::path& folder, const StateOwner& owner, const ModelConfig& config) {
  StreamState stream{load_state(state_file(folder), owner), {}, {}};
  const SafetensorsReader file = open_changes(folder);
  if (fact(file, "method") != owner.method || fact(file, "base_hash") != owner.base_hash)
    throw CheckpointError(cat(file.path().string(), ": not of the state beside it: the folder was mixed up"));
  NamedTensors named;  // cloned: the file goes away before the stream does
  for (const TensorInfo& info : file.tensors()) named.emplace_back(info.name, to_tensor(file.view(info.name)).clone());
  stream.changes = to_changes(named, config);
  try {
    stream.request_ids = nlohmann::json::parse(fact(file, "requests")).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(cat(file.path().string(), ": requests: expected a list of ids: ", error.what()));
  }
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
    const at::Device device = weight_device(model.placement(), weight.id);
    for (const WeightDelta& delta : weight.deltas) {
      if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
        transaction.apply(weight.id, LowRankDelta{low_rank->left_OR.to(device), low_rank->right_RI.to(device)});
      else
        transaction.apply(weight.id, DenseDelta{std::get<DenseDelta>(delta).full_OI.to(device)});
    }
  }
}

}  // namespace lancet
