#include "lancet/edit/activations.h"

#include <torch/types.h>

#include "lancet/models/batching.h"

namespace lancet {

Tensor collect_at(const CausalLM& model, std::span<const LocatedPrompt* const> rows, HookSite site) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  for (const LocatedPrompt* row : rows) lengths.push_back(row->lookup + 1);

  std::vector<Tensor> parts;
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& batch_rows : plan_batches(lengths, kForwardTokens)) {
    std::vector<std::vector<TokenId>> ids;
    std::vector<int64_t> last;
    for (const int64_t row : batch_rows) {
      const LocatedPrompt& prompt = *rows[static_cast<size_t>(row)];
      ids.emplace_back(prompt.ids.begin(), prompt.ids.begin() + prompt.lookup + 1);
      last.push_back(prompt.lookup);
    }
    const TokenBatch batch = make_batch(ids);
    HookSet hooks;
    hooks.observe(site, [&](const Tensor& value_BTX) {
      const Tensor index = torch::arange(value_BTX.size(0)) * value_BTX.size(1) + torch::tensor(last, torch::kLong);
      parts.push_back(value_BTX.flatten(0, 1).index_select(0, index.to(value_BTX.device())));
    });
    hooks.stop_at(site);
    model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, site.layer + 1}, hooks);
    order.insert(order.end(), batch_rows.begin(), batch_rows.end());
  }
  return in_place_order(parts, order);
}

}  // namespace lancet
