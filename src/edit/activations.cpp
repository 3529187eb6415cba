#include "lancet/edit/activations.h"

#include <torch/types.h>

#include "lancet/models/batching.h"
#include "lancet/runtime/stage_turns.h"

namespace lancet {

Tensor collect_at(const CausalLM& model, std::span<const LocatedPrompt* const> rows, HookSite site) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  for (const LocatedPrompt* row : rows) lengths.push_back(row->lookup + 1);

  const std::vector<std::vector<int64_t>> batches = plan_batches(lengths, kForwardTokens);
  std::vector<Tensor> parts(batches.size());
  const auto run_batch = [&](int64_t i, StageTurn& turn) {
    const torch::NoGradGuard no_grad_in_this_thread;
    std::vector<std::vector<TokenId>> ids;
    std::vector<int64_t> last;
    for (const int64_t row : batches[static_cast<size_t>(i)]) {
      const LocatedPrompt& prompt = *rows[static_cast<size_t>(row)];
      ids.emplace_back(prompt.ids.begin(), prompt.ids.begin() + prompt.lookup + 1);
      last.push_back(prompt.lookup);
    }
    TokenBatch batch = make_batch(ids);
    batch.sequence.turn = &turn;
    batch.sequence.outputs_BO = torch::tensor(last, torch::kLong).unsqueeze(1);
    HookSet hooks;
    hooks.observe(site, [&](const Tensor& value_BTX) {
      const bool is_whole = site.point == HookPoint::kBlockIn;  // of all tokens; behind it, of the outputs alone
      const Tensor place_B11 = batch.sequence.outputs_BO.to(value_BTX.device()).unsqueeze(2);
      const Tensor value_B1X = is_whole ? value_BTX.take_along_dim(place_B11, 1) : value_BTX;
      parts[static_cast<size_t>(i)] = value_B1X.squeeze(1);
    });
    hooks.stop_at(site);
    model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, site.layer + 1}, hooks);
  };
  run_in_turns(model.placement(), 0, static_cast<int64_t>(batches.size()), run_batch);
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& rows_of_batch : batches)
    order.insert(order.end(), rows_of_batch.begin(), rows_of_batch.end());
  return in_place_order(parts, order);
}

}  // namespace lancet
