#include "logit_lens.h"

#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

LogitLens look_through(const CausalLM& model, const std::vector<TokenId>& prompt, TokenId token) {
  const torch::NoGradGuard no_grad;
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{prompt});
  const auto last = static_cast<int64_t>(prompt.size()) - 1;
  std::vector<Tensor> states_D(static_cast<size_t>(model.config().n_layers));
  HookSet hooks;
  for (size_t layer = 0; layer < states_D.size(); ++layer)
    hooks.observe({HookPoint::kBlockOut, static_cast<int64_t>(layer)},
                  [&states_D, layer, last](const Tensor& h_BTD) { states_D[layer] = h_BTD[0][last].clone(); });
  model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
  LogitLens lens;
  for (size_t layer = 0; layer < states_D.size(); ++layer) {
    const Tensor h_1D = states_D[layer].to(model.placement().head_device()).unsqueeze(0);
    const Tensor logits_V = model.logits(h_1D).squeeze(0).to(model.placement().value_dtype());
    const Tensor of_token = logits_V[token];
    lens.probability.push_back((of_token - torch::logsumexp(logits_V, 0)).exp().item<double>());
    lens.rank.push_back(1 + (logits_V > of_token).sum().item<int64_t>());
    if (!std::isfinite(lens.probability.back()))
      throw NumericError(cat("logit lens: layer ", layer, ": what it says of a prompt is not finite: the model is ",
                             "damaged, or its numbers are too large for this dtype: try run.dtype: f32"));
  }
  return lens;
}

}  // namespace lancet
