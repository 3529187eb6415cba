#include "layer_messages.h"

#include <torch/types.h>

#include <set>

#include "lancet/core/hash.h"

namespace lancet {

void add_sequence(const SequenceInfo& sequence, LayerRange layers, OutputUse outputs, RankMessage& message) {
  std::vector<int64_t>& numbers = message.numbers;
  numbers.insert(numbers.end(), {layers.begin, layers.end});
  add_list(numbers, sequence.lengths);
  numbers.push_back(std::ssize(sequence.packed));
  for (const DocumentRun& run : sequence.packed) numbers.insert(numbers.end(), {run.documents, run.tokens});
  const bool is_ragged = sequence.ragged != nullptr, has_prefix = sequence.prefix != nullptr;
  numbers.push_back(is_ragged ? 1 : 0);
  if (is_ragged) {
    add_list(numbers, sequence.ragged->tokens);
    numbers.push_back(std::ssize(sequence.ragged->earlier));
    for (const std::vector<int64_t>& places : sequence.ragged->earlier) add_list(numbers, places);
    add_list(numbers, sequence.ragged->queries);
    numbers.push_back(sequence.ragged->window);
  }
  for (const Tensor& tensor : {sequence.positions_BT, sequence.places_P, sequence.first_T,
                               outputs == OutputUse::kTaken ? sequence.outputs_BO : Tensor()})
    message.tensors.push_back(tensor);
  const int64_t positions = has_prefix && !sequence.prefix->empty() ? sequence.prefix->positions() : 0;
  numbers.insert(numbers.end(), {has_prefix ? 1 : 0, positions});
  if (positions == 0) return;
  message.tensors.push_back(sequence.prefix->valid_BP());
  add_recorded(*sequence.prefix, layers, message);
}

std::unique_ptr<OwnSequence> read_sequence(MessageReader& message, const Placement& placement) {
  auto own = std::make_unique<OwnSequence>();
  own->layers.begin = message.number();
  own->layers.end = message.number();
  own->info.lengths = message.list();
  for (int64_t left = message.number(); left > 0; --left) {
    const int64_t documents = message.number();
    own->info.packed.push_back({documents, message.number()});
  }
  if (message.number() != 0) {
    own->ragged.tokens = message.list();
    for (int64_t left = message.number(); left > 0; --left) own->ragged.earlier.push_back(message.list());
    own->ragged.queries = message.list();
    own->ragged.window = message.number();
    own->info.ragged = &own->ragged;
  }
  for (Tensor* tensor : {&own->info.positions_BT, &own->info.places_P, &own->info.first_T, &own->info.outputs_BO})
    *tensor = message.tensor();
  if (message.number() != 0) own->info.prefix = &own->prefix;
  if (message.number() == 0) return own;
  const Tensor valid_BP = message.tensor();
  for (int64_t layer = own->layers.begin; layer < own->layers.end; ++layer)
    read_recorded(message, {layer, layer + 1}, placement.device_of(layer), own->prefix);
  own->prefix.end_pass(valid_BP);
  return own;
}

void add_recorded(const KeyValues& recorded, LayerRange layers, RankMessage& message) {
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    const KeyValuePair pair = recorded.layer(layer);
    message.tensors.push_back(pair.key);
    message.tensors.push_back(pair.value);
  }
}

void read_recorded(MessageReader& message, LayerRange layers, at::Device device, KeyValues& record) {
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    const Tensor key_BKPC = message.tensor(), value_BKPC = message.tensor();
    if (!key_BKPC.defined()) continue;
    record.record(layer, {key_BKPC.to(device).transpose(1, 2), value_BKPC.to(device).transpose(1, 2)});
  }
}

std::string hash_of_layers(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                           int64_t rank) {
  std::set<std::string> names;
  for (const WeightSpec& spec : resolve_weights(config, checkpoint))
    if (role_of(spec.id.kind).place == WeightPlace::kLayer && placement.stage_with(spec.id.layer).rank == rank)
      for (const std::string& name : spec.tensor_names()) names.insert(name);
  ContentHash hash;
  for (const std::string& name : names) {
    hash.add(name);
    checkpoint.view(name).add_to(hash);
  }
  return hash.hex();
}

}  // namespace lancet
