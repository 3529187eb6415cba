#include "layer_texts.h"

#include <torch/types.h>

#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr HookPoint kPointOfInput[kMatrixInputs] = {
    HookPoint::kAttnIn,    HookPoint::kAttnKey,     HookPoint::kMlpIn,     HookPoint::kMlpKey,  HookPoint::kMlpIn,
    HookPoint::kSharedKey, HookPoint::kQueryVector, HookPoint::kKeyVector, HookPoint::kMixerKey};

/// The last place of a layer's pass that a matrix reads.
HookPoint last_point(const ModelConfig& config, int64_t layer) {
  if (config.has_shared_mlp(layer)) return HookPoint::kSharedKey;
  if (config.has_mlp(layer)) return HookPoint::kMlpKey;
  return has_input(config, layer, MatrixInput::kMixerHeads) ? HookPoint::kMixerKey : HookPoint::kAttnKey;
}

}  // namespace

LayerTexts::LayerTexts(const CausalLM& model, std::vector<TokenBatch> batches) : model_(model) {
  const torch::NoGradGuard no_grad;
  for (TokenBatch& batch : batches) {
    const Tensor h_BTD = model.embed(batch.ids_BT, batch.sequence).to(Placement::host());
    texts_.push_back({std::move(batch), h_BTD});
  }
}

void LayerTexts::see_inputs(int64_t layer,
                            const std::function<void(const SequenceInfo&, const LayerInputs&)>& see) const {
  const torch::NoGradGuard no_grad;
  const ModelConfig& config = model_.config();
  for (const Text& text : texts_) {
    LayerInputs inputs;
    HookSet hooks;
    for (const MatrixInput input : kAllMatrixInputs) {
      if (!has_input(config, layer, input)) continue;
      const auto i = static_cast<size_t>(input);
      hooks.observe({kPointOfInput[i], layer}, [&inputs, i](const Tensor& x) { inputs[i] = x.flatten(0, 1); });
    }
    hooks.stop_at({last_point(config, layer), layer});
    model_.run_layers(text.h_BTD.to(model_.placement().device_of(layer)), text.batch.sequence, {layer, layer + 1},
                      hooks);
    see(text.batch.sequence, inputs);
  }
}

void LayerTexts::advance(int64_t layer) {
  const torch::NoGradGuard no_grad;
  for (Text& text : texts_)
    text.h_BTD =
        model_.run_layers(text.h_BTD.to(model_.placement().device_of(layer)), text.batch.sequence, {layer, layer + 1})
            .to(Placement::host());
}

int64_t LayerTexts::kept_bytes() const {
  int64_t bytes = 0;
  for (const Text& text : texts_) bytes += static_cast<int64_t>(text.h_BTD.nbytes());
  return bytes;
}

}  // namespace lancet
