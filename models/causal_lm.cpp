#include "lancet/models/causal_lm.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "decoder_layer.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/runtime/numerics.h"

namespace lancet {
namespace {

LayerWeights layer_weights(const std::map<WeightId, Tensor>& weights, int64_t layer) {
  const auto get = [&](WeightKind kind) {
    const auto at = weights.find({kind, layer});
    return at == weights.end() ? Tensor() : at->second;
  };
  return {.attn_norm = get(WeightKind::kAttnNorm),
          .query = get(WeightKind::kQuery),
          .key = get(WeightKind::kKey),
          .value = get(WeightKind::kValue),
          .attn_out = get(WeightKind::kAttnOut),
          .query_bias = get(WeightKind::kQueryBias),
          .key_bias = get(WeightKind::kKeyBias),
          .value_bias = get(WeightKind::kValueBias),
          .attn_out_bias = get(WeightKind::kAttnOutBias),
          .mlp_norm = get(WeightKind::kMlpNorm),
          .gate = get(WeightKind::kGate),
          .up = get(WeightKind::kUp),
          .down = get(WeightKind::kDown),
          .gate_bias = get(WeightKind::kGateBias),
          .up_bias = get(WeightKind::kUpBias),
          .down_bias = get(WeightKind::kDownBias)};
}

void check_packing(const Tensor& h_BTD, const SequenceInfo& sequence) {
  if (sequence.packed.empty()) return;
  if (sequence.prefix != nullptr || sequence.record != nullptr)
    throw std::logic_error("run_layers: packed documents have no prefix, and their keys and values are not recorded");
  int64_t places = 0;
  for (const DocumentRun& run : sequence.packed) places += run.documents * run.tokens;
  const int64_t expected = sequence.places_P.defined() ? sequence.places_P.size(0) : h_BTD.size(1);
  if (h_BTD.size(0) != 1 || places != expected)
    throw std::logic_error(cat("run_layers: packed documents of ", places, " tokens in all, expected ", expected,
                               " for hidden states of ", h_BTD.size(0), " row(s) of ", h_BTD.size(1)));
}

/// Hidden states come from the layer's own stage, or from the one before.
void check_entry(const Placement& placement, const Tensor& h_BTD, int64_t layer) {
  if (layer > 0 && h_BTD.device() == placement.device_of(layer - 1)) return;
  check_device(h_BTD, placement.device_of(layer), cat("hidden states into layer ", layer));
}

void check_prefix(const SequenceInfo& sequence, at::Device device, int64_t layer) {
  if (sequence.prefix == nullptr || sequence.prefix->empty()) return;
  const KeyValuePair prefix = sequence.prefix->layer(layer);
  check_device(prefix.key, device, cat("cached keys of layer ", layer));
  check_device(prefix.value, device, cat("cached values of layer ", layer));
}

/// Rounded up: a model that is there is never "0 MB".
int64_t megabytes(int64_t bytes) { return (bytes + 999'999) / 1'000'000; }

/// Adds the weights that lie on `device`.
void load_onto(at::Device device, const Checkpoint& checkpoint, const Placement& placement,
               const std::vector<WeightSpec>& table, std::map<WeightId, Tensor>& weights) {
  std::vector<TensorRead> reads;
  std::vector<WeightId> ids;
  int64_t total_bytes = 0;
  for (const WeightSpec& spec : table) {
    if (weight_device(placement, spec.id) != device) continue;
    reads.push_back({checkpoint.view(spec.stored_name), device, placement.weight_dtype()});
    ids.push_back(spec.id);
    total_bytes += static_cast<int64_t>(reads.back().stored.bytes.size());
  }
  const std::string where = placement.stages().size() == 1 ? "" : cat(" ", device.str());
  Progress progress("loading" + where, megabytes(total_bytes), "MB");
  std::vector<Tensor> tensors = read_tensors(reads, [&](int64_t read_bytes) { progress.set(megabytes(read_bytes)); });
  for (size_t i = 0; i < ids.size(); ++i) weights.emplace(ids[i], std::move(tensors[i]));
}

}  // namespace

at::Device weight_device(const Placement& placement, WeightId id) {
  switch (id.kind) {
    case WeightKind::kEmbedding:
      return placement.embed_device();
    case WeightKind::kFinalNorm:
    case WeightKind::kHead:
      return placement.head_device();
    default:
      return placement.device_of(id.layer);
  }
}

CausalLM::CausalLM(ModelConfig config, Placement placement)
    : config_(std::move(config)), placement_(std::move(placement)) {
  set_numerics();
  const Tensor frequencies = rope_frequencies(
      config_, placement_.weight_dtype() == torch::kDouble ? RopePrecision::kF64 : RopePrecision::kF32);
  for (const Stage& stage : placement_.stages()) rope_frequencies_.push_back(frequencies.to(stage.device));
}

CausalLM CausalLM::load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement) {
  const torch::NoGradGuard no_grad;
  const std::vector<WeightSpec> table = resolve_weights(config, checkpoint);
  std::map<WeightId, Tensor> by_id;
  std::vector<at::Device> devices;
  for (const Stage& stage : placement.stages())
    if (std::find(devices.begin(), devices.end(), stage.device) == devices.end()) devices.push_back(stage.device);
  for (const at::Device device : devices) load_onto(device, checkpoint, placement, table, by_id);
  return from_weights(config, placement, std::move(by_id));
}

CausalLM CausalLM::from_weights(const ModelConfig& config, const Placement& placement,
                                std::map<WeightId, Tensor> weights) {
  const torch::NoGradGuard no_grad;
  CausalLM model(config, placement);
  model.weights_ = std::move(weights);
  const std::vector<WeightSpec> table = weight_table(config);
  if (model.weights_.size() != table.size())
    throw std::logic_error(cat("expected ", table.size(), " weights, got ", model.weights_.size()));
  for (const WeightSpec& spec : table) {
    const Tensor& weight = model.weight(spec.id);
    check_device(weight, weight_device(placement, spec.id), spec.name);
    if (weight.scalar_type() != placement.weight_dtype() || weight.sizes() != at::IntArrayRef(spec.shape))
      throw std::logic_error(cat(spec.name, ": expected ", at::toString(placement.weight_dtype()), " ",
                                 at::IntArrayRef(spec.shape), ", got ", at::toString(weight.scalar_type()), " ",
                                 weight.sizes()));
  }
  if (config.tied_embeddings)
    model.weights_.emplace(WeightId{WeightKind::kHead},
                           model.weight({WeightKind::kEmbedding}).to(placement.head_device()));
  return model;
}

Tensor CausalLM::embed(const Tensor& ids_BT) const {
  check_device(ids_BT, Placement::host(), "token ids");
  return at::embedding(weight({WeightKind::kEmbedding}), ids_BT.to(placement_.embed_device()));
}

Tensor CausalLM::run_layers(Tensor h_BTD, const SequenceInfo& sequence, LayerRange range, const HookSet& hooks) const {
  if (range.begin < 0 || range.end > config_.n_layers || range.begin > range.end)
    throw std::logic_error(cat("run_layers: layers ", range.begin, "..", range.end, " of ", config_.n_layers));
  if (range.begin == range.end)
    return take_places(h_BTD, output_places(sequence.outputs_BO, h_BTD.size(1), h_BTD.device()));
  check_packing(h_BTD, sequence);
  check_entry(placement_, h_BTD, range.begin);
  const PassInputs* prepared = sequence.prepared;
  AttentionInputs inputs;
  for (int64_t layer = range.begin; layer < range.end; ++layer) {
    const int64_t stage = placement_.stage_of(layer);
    if (layer == range.begin || stage != placement_.stage_of(layer - 1)) {
      if (sequence.turn != nullptr) sequence.turn->enter(stage);
      h_BTD = h_BTD.to(placement_.device_of(layer));  // the only crossing between stages; differentiable
      inputs = prepared != nullptr ? prepared->stages.at(stage) : stage_inputs(sequence, stage);
    }
    check_prefix(sequence, h_BTD.device(), layer);
    if (layer + 1 == range.end && sequence.outputs_BO.defined())
      inputs = prepared != nullptr ? prepared->last : only_outputs(inputs, sequence);
    h_BTD =
        run_decoder_layer({config_, layer_weights(weights_, layer), inputs, sequence, hooks, layer}, std::move(h_BTD));
    count_progress();
    if (!h_BTD.defined()) break;
  }
  if (sequence.record != nullptr) sequence.record->end_pass(valid_tokens(sequence));
  return h_BTD;
}

AttentionInputs CausalLM::stage_inputs(const SequenceInfo& sequence, int64_t stage) const {
  return attention_inputs(sequence, rope_frequencies_[static_cast<size_t>(stage)], placement_.weight_dtype());
}

std::shared_ptr<const PassInputs> CausalLM::prepare_pass(const SequenceInfo& sequence, LayerRange range) const {
  const auto pass = std::make_shared<PassInputs>();
  for (int64_t layer = range.begin; layer < range.end; ++layer) {
    const int64_t stage = placement_.stage_of(layer);
    if (!pass->stages.contains(stage)) pass->stages.emplace(stage, stage_inputs(sequence, stage));
  }
  if (sequence.outputs_BO.defined() && range.begin < range.end)
    pass->last = only_outputs(pass->stages.at(placement_.stage_of(range.end - 1)), sequence);
  return pass;
}

Tensor CausalLM::logits(const Tensor& h_ND) const {
  check_device(h_ND, placement_.head_device(), "hidden states for the head");
  return at::linear(rms_norm(h_ND, weight({WeightKind::kFinalNorm}), config_.rms_norm_eps),
                    weight({WeightKind::kHead}));
}

const Tensor& CausalLM::weight(WeightId id) const {
  const auto at = weights_.find(id);
  if (at == weights_.end()) throw std::logic_error("the model has no weight " + weight_name(config_, id));
  return at->second;
}

void CausalLM::set_weight(WeightId id, Tensor value) {
  const Tensor& current = weight(id);
  check_device(value, current.device(), weight_name(config_, id));
  if (value.scalar_type() != current.scalar_type() || value.sizes() != current.sizes())
    throw std::logic_error(cat(weight_name(config_, id), ": expected ", at::toString(current.scalar_type()), " ",
                               current.sizes(), ", got ", at::toString(value.scalar_type()), " ", value.sizes()));
  weights_[id] = std::move(value);
}

}  // namespace lancet
