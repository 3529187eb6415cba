#include "lancet/models/causal_lm.h"

#include <torch/types.h>

#include <stdexcept>
#include <utility>

#include "blocks/pointwise.h"
#include "blocks/scaled.h"
#include "decoder_layer.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/linear.h"
#include "lancet/models/layers_elsewhere.h"
#include "lancet/runtime/send.h"
#include "lancet/runtime/tensor.h"
#include "loading/weight_loader.h"

namespace lancet {

/// What passes need that depends only on the configuration. It is made once.
struct PassConstants {
  std::map<LayerReach, std::vector<RopeFrequencies>> frequencies;  ///< frequencies of each stage, on its device
};

namespace {

LayerWeights layer_weights(const ModelWeights& weights, const Family& family, int64_t layer) {
  LayerWeights own;
  for (const WeightRow& row : family.weights) {
    if (role_of(row.kind).place != WeightPlace::kLayer) continue;
    const WeightId id{row.kind, layer};
    if (const auto full = weights.full.find(id); full != weights.full.end()) own[row.kind] = full->second;
    if (const auto quantised = weights.quantised.find(id); quantised != weights.quantised.end())
      own.set_quantised(row.kind, quantised->second);
  }
  return own;
}

void check_packing(const Tensor& h_BTD, const SequenceInfo& sequence) {
  if (sequence.packed.empty()) return;
  if (sequence.prefix != nullptr) throw std::logic_error("run_layers: packed documents have no prefix");
  int64_t places = 0;
  for (const DocumentRun& run : sequence.packed) places += run.documents * run.tokens;
  const int64_t expected = sequence.places_P.defined() ? sequence.places_P.size(0) : h_BTD.size(1);
  if (h_BTD.size(0) != 1 || places != expected)
    throw std::logic_error(cat("run_layers: packed documents of ", places, " tokens in all, expected ", expected,
                               " for hidden states of ", h_BTD.size(0), " row(s) of ", h_BTD.size(1)));
}

LayerReach reach_of(const ModelConfig& config, int64_t layer) {
  return config.has_window(layer) ? LayerReach::kWindow : LayerReach::kAll;
}

/// Hidden states must be on the device of the layer's stage, or of the stage before.
void check_entry(const Placement& placement, const Tensor& h_BTD, int64_t layer) {
  if (layer > 0 && h_BTD.device() == placement.device_of(layer - 1)) return;
  check_device(h_BTD, placement.device_of(layer), cat("hidden states into layer ", layer));
}

void check_weight(const WeightSpec& spec, const Placement& placement, const ModelWeights& weights) {
  const at::Device device = weight_device(placement, spec.id);
  if (const auto quantised = weights.quantised.find(spec.id); quantised != weights.quantised.end()) {
    if (quantised->second.device() != device || quantised->second.sizes() != spec.shape)
      throw std::logic_error(cat(spec.name, ": expected ", at::IntArrayRef(spec.shape), " on ", device.str(), ", got ",
                                 at::IntArrayRef(quantised->second.sizes()), " on ", quantised->second.device().str()));
    return;
  }
  const auto full = weights.full.find(spec.id);
  if (full == weights.full.end()) throw std::logic_error(cat("the model has no weight ", spec.name));
  const Tensor& weight = full->second;
  check_device(weight, device, spec.name);
  const at::ScalarType type = weight_type(spec.id.kind, placement.weight_dtype());
  if (weight.scalar_type() != type || weight.sizes() != at::IntArrayRef(spec.shape))
    throw std::logic_error(cat(spec.name, ": expected ", at::toString(type), " ", at::IntArrayRef(spec.shape), ", got ",
                               at::toString(weight.scalar_type()), " ", weight.sizes()));
}

/// Whether texts beyond the model's positions are rotated differently than the model says (the base of NTK grows with
/// the text).
bool changes_beyond_positions(const ModelConfig& config) {
  const auto changes = [](const RopeConfig& rope) { return rope.scaling == RopeConfig::Scaling::kDynamic; };
  return changes(config.rope) || (config.window_rope && changes(*config.window_rope));
}

void check_prefix(const ModelConfig& config, const SequenceInfo& sequence, at::Device device, int64_t layer) {
  if (sequence.prefix == nullptr || sequence.prefix->empty()) return;
  if (config.has_recurrence(layer))
    check_device(sequence.prefix->keeps() == MixerMemory::kEnds ? sequence.prefix->mixer_state(layer).tail_RXC
                                                                : sequence.prefix->mixer_tokens(layer).key,
                 device, cat("what the mixer of layer ", layer, " has kept"));
  if (!config.has_attention(layer)) return;
  const KeyValuePair prefix = sequence.prefix->layer(layer);
  check_device(prefix.key, device, cat("cached keys of layer ", layer));
  check_device(prefix.value, device, cat("cached values of layer ", layer));
}

/// Returns the part of a pass, from `layer` on, that one other rank computes.
PassElsewhere elsewhere(const Placement& placement, int64_t layer, LayerRange range) {
  const int64_t rank = placement.stage_with(layer).rank;
  LayerRange layers{layer, layer};
  while (layers.end < range.end && placement.stage_with(layers.end).rank == rank) ++layers.end;
  return {rank, layers, layers.end == range.end, placement.device_of(layers.end - 1)};
}

}  // namespace

std::string precision_text(const CausalLM& model) {
  std::string text(dtype_name(to_dtype(model.placement().weight_dtype())));
  const std::vector<std::string> formats(model.quantised_formats().begin(), model.quantised_formats().end());
  if (!formats.empty()) text += ", quantised weights " + join(formats, " and ");
  return text;
}

CausalLM::CausalLM(ModelConfig config, Placement placement)
    : config_(std::move(config)), placement_(std::move(placement)) {
  set_numerics();
  const auto precision = placement_.weight_dtype() == torch::kDouble ? RopePrecision::kF64 : RopePrecision::kF32;
  const auto own = std::make_shared<PassConstants>();
  const RopeFrequencies all = rope_frequencies(config_.rope, precision);
  const RopeFrequencies window = config_.window_rope ? rope_frequencies(*config_.window_rope, precision) : all;
  for (const Stage& stage : placement_.stages()) {
    own->frequencies[LayerReach::kAll].push_back(all.to(stage.device));
    own->frequencies[LayerReach::kWindow].push_back(window.to(stage.device));
  }
  constants_ = own;
}

CausalLM CausalLM::load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                        const QuantiseRule& rule) {
  const torch::NoGradGuard no_grad;
  return of(config, placement, load_weights(checkpoint, config, placement, rule), rule);
}

CausalLM CausalLM::load_part(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement,
                             const QuantiseRule& rule, std::shared_ptr<LayersElsewhere> elsewhere) {
  CausalLM model = load(checkpoint, config, placement, rule);
  model.elsewhere_ = std::move(elsewhere);
  return model;
}

CausalLM CausalLM::from_weights(const ModelConfig& config, const Placement& placement,
                                std::map<WeightId, Tensor> weights) {
  const torch::NoGradGuard no_grad;
  return of(config, placement, {.full = std::move(weights)}, {});
}

CausalLM CausalLM::of(const ModelConfig& config, const Placement& placement, ModelWeights weights, QuantiseRule rule) {
  CausalLM model(config, placement);
  model.rule_ = std::move(rule);
  model.weights_ = std::move(weights);
  std::vector<WeightSpec> table = weight_table(config);
  std::erase_if(table, [&](const WeightSpec& spec) { return !lies_here(placement, spec.id); });
  if (const size_t n = model.weights_.full.size() + model.weights_.quantised.size(); n != table.size())
    throw std::logic_error(cat("expected ", table.size(), " weights, got ", n));
  for (const WeightSpec& spec : table) check_weight(spec, placement, model.weights_);
  if (config.tied_embeddings && placement.has_ends())
    model.weights_.full.emplace(WeightId{WeightKind::kHead},
                                model.weight({WeightKind::kEmbedding}).to(placement.head_device()));
  return model;
}

Tensor CausalLM::embed_tokens(const Tensor& ids_BT) const {
  check_device(ids_BT, Placement::host(), "token ids");
  const Tensor h_BTD = at::embedding(weight({WeightKind::kEmbedding}), sent_to(placement_.embed_device(), ids_BT));
  if (config_.normed_embedding)
    return normed(config_, h_BTD, optional_weight({WeightKind::kEmbeddingNorm}),
                  optional_weight({WeightKind::kEmbeddingNormBias}));
  if (config_.embedding_scale == 1) return h_BTD;
  return h_BTD * torch::full({}, config_.embedding_scale, h_BTD.options());  // rounded to the type, as in transformers
}

Tensor CausalLM::embed(const Tensor& ids_BT, const SequenceInfo& sequence) const {
  const Tensor h_BTD = embed_tokens(ids_BT);
  const bool are_learned = has_weight(config_, WeightKind::kPositions);
  if (!are_learned && !changes_beyond_positions(config_)) return h_BTD;
  if (const int64_t seen = positions_seen(sequence); seen > config_.max_positions)
    throw ConfigError(cat("a text of ", seen, " tokens, but the model has ", config_.max_positions,
                          " positions: expected shorter texts"));
  if (!are_learned) return h_BTD;
  const Tensor positions_BT =
      // padding is beyond the last position
      config_.first_position + sequence.positions_BT.clamp_max(config_.max_positions - 1);
  return h_BTD + at::embedding(weight({WeightKind::kPositions}), sent_to(h_BTD.device(), positions_BT));
}

Tensor CausalLM::run_layers(Tensor h_BTD, const SequenceInfo& sequence, LayerRange range, const HookSet& hooks) const {
  if (range.begin < 0 || range.end > config_.n_layers || range.begin > range.end)
    throw std::logic_error(cat("run_layers: layers ", range.begin, "..", range.end, " of ", config_.n_layers));
  if (range.begin == range.end)
    return take_places(h_BTD, sequence.prepared != nullptr
                                  ? sequence.prepared->last.outputs
                                  : output_places(sequence.outputs_BO, h_BTD.size(1), h_BTD.device()));
  check_packing(h_BTD, sequence);
  check_entry(placement_, h_BTD, range.begin);
  PassInputs own;  // inputs of the current stage
  ResidualStream stream{std::move(h_BTD), {}};
  for (int64_t layer = range.begin; layer < range.end; ++layer) {
    const int64_t stage = placement_.stage_of(layer);
    if (layer == range.begin || stage != placement_.stage_of(layer - 1)) {
      if (sequence.turn != nullptr) sequence.turn->enter(stage);
      // the only transfer between stages; it is differentiable
      stream = {stream.sum().to(placement_.device_of(layer)), {}};
      own = {};
    }
    if (!placement_.is_here(layer)) {
      const PassElsewhere pass = elsewhere(placement_, layer, range);
      stream = {run_elsewhere(stream.h_BTD, sequence, pass, hooks), {}};
      layer = pass.layers.end - 1;
    } else {
      check_prefix(config_, sequence, stream.h_BTD.device(), layer);
      if (sequence.prepared == nullptr) add_inputs(sequence, range, layer, own);
      const PassInputs& pass = sequence.prepared != nullptr ? *sequence.prepared : own;
      const bool gives_outputs = layer + 1 == range.end && sequence.outputs_BO.defined();
      const AttentionInputs& inputs = gives_outputs ? pass.last : pass.stages.at({stage, reach_of(config_, layer)});
      const LayerWeights weights = layer_weights(weights_, *config_.family, layer);
      stream = run_decoder_layer({config_, weights, inputs, sequence, hooks, layer}, std::exchange(stream, {}));
    }
    count_progress();
    if (!stream.h_BTD.defined()) break;
  }
  if (sequence.record != nullptr) sequence.record->end_pass(valid_tokens(sequence));
  return stream.sum();
}

Tensor CausalLM::run_elsewhere(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass,
                               const HookSet& hooks) const {
  if (elsewhere_ == nullptr) throw std::logic_error(cat("run_layers: layer ", pass.layers.begin, " is another rank's"));
  const HeldPass* held =
      sequence.prepared != nullptr ? sequence.prepared->elsewhere.at(pass.layers.begin).get() : nullptr;
  return elsewhere_->run(h_BTD, sequence, pass, hooks, held);
}

void CausalLM::add_inputs(const SequenceInfo& sequence, LayerRange range, int64_t layer, PassInputs& pass) const {
  const int64_t stage = placement_.stage_of(layer);
  const LayerReach reach = reach_of(config_, layer);
  const at::Device device = placement_.device_of(layer);
  auto at = pass.stages.find({stage, reach});
  if (at == pass.stages.end()) {
    const RopeFrequencies& frequencies = constants_->frequencies.at(reach)[static_cast<size_t>(stage)];
    at = pass.stages
             .emplace(std::pair{stage, reach},
                      attention_inputs(config_, sequence, reach, frequencies, device, placement_.weight_dtype()))
             .first;
  }
  if (layer + 1 == range.end && sequence.outputs_BO.defined())
    pass.last = only_outputs(at->second, sequence, device, placement_.weight_dtype());
}

std::shared_ptr<const PassInputs> CausalLM::prepare_pass(const SequenceInfo& sequence, LayerRange range) const {
  const auto pass = std::make_shared<PassInputs>();
  for (int64_t layer = range.begin; layer < range.end; ++layer) {
    if (placement_.is_here(layer)) {
      add_inputs(sequence, range, layer, *pass);
      continue;
    }
    const PassElsewhere part = elsewhere(placement_, layer, range);
    pass->elsewhere.emplace(layer, elsewhere_->hold(sequence, part));
    layer = part.layers.end - 1;
  }
  if (range.begin == range.end)
    pass->last.outputs =
        output_places(sequence.outputs_BO, sequence.positions_BT.size(1), placement_.device_of(range.end - 1));
  return pass;
}

Tensor CausalLM::logits(const Tensor& h_ND) const {
  check_device(h_ND, placement_.head_device(), "hidden states for the head");
  const Tensor x_ND =
      normed(config_, h_ND, optional_weight({WeightKind::kFinalNorm}), optional_weight({WeightKind::kFinalNormBias}));
  const Tensor logits_NV = scaled(
      linear_of(x_ND, weight({WeightKind::kHead}), optional_weight({WeightKind::kHeadBias})), config_.logits_scale);
  const double cap = config_.logits_cap;
  return cap > 0 ? torch::tanh(logits_NV / cap) * cap : logits_NV;
}

const Tensor& CausalLM::weight(WeightId id) const {
  if (const auto at = weights_.full.find(id); at != weights_.full.end()) return at->second;
  if (elsewhere_ != nullptr && !lies_here(placement_, id) && !is_quantised(id)) {
    const WeightId known = weight_spec(config_, id).id;
    return elsewhere_->weight(placement_.stage_with(id.layer).rank, known, weight_device(placement_, id));
  }
  throw std::logic_error(cat("the model has no weight ", weight_name(config_, id),
                             is_quantised(id) ? " in full precision: it is quantised" : ""));
}

bool CausalLM::is_finite(WeightId id) const {
  if (elsewhere_ != nullptr && !lies_here(placement_, id))
    return elsewhere_->is_finite(placement_.stage_with(id.layer).rank, id);
  return weight(id).isfinite().all().item<bool>();
}

Tensor CausalLM::optional_weight(WeightId id) const {
  const auto at = weights_.full.find(id);
  return at == weights_.full.end() ? Tensor() : at->second;
}

bool CausalLM::is_quantised(WeightId id) const {
  return weights_.quantised.contains(id) || weights_.quantised_elsewhere.contains(id);
}

void CausalLM::check_replacement(WeightId id, const Tensor& value) const {
  const Tensor& current = weight(id);
  if (value.scalar_type() != current.scalar_type() || value.sizes() != current.sizes())
    throw std::logic_error(cat(weight_name(config_, id), ": expected ", at::toString(current.scalar_type()), " ",
                               current.sizes(), ", got ", at::toString(value.scalar_type()), " ", value.sizes()));
}

void CausalLM::set_weight(WeightId id, Tensor value) {
  check_device(value, weight(id).device(), weight_name(config_, id));
  check_replacement(id, value);
  if (lies_here(placement_, id))
    weights_.full[id] = std::move(value);
  else
    elsewhere_->set_weight(placement_.stage_with(id.layer).rank, id, std::move(value));
}

void CausalLM::put_weight(WeightId id, Tensor value) {
  const Tensor& current = weight(id);
  if (value.device() == current.device()) return set_weight(id, std::move(value));
  if (!lies_here(placement_, id)) return set_weight(id, value.to(current.device()));
  check_replacement(id, value);
  current.copy_(value);
}

}  // namespace lancet
