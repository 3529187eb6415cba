#include "lancet/edit/activations.h"

#include <torch/types.h>

#include "lancet/models/batching.h"
#include "lancet/models/spread_rows.h"

namespace lancet {
namespace {

/// [rows of the batch, dim].
Tensor collect_batch(const CausalLM& model, std::span<const LocatedPrompt* const> rows,
                     const std::vector<int64_t>& batch_rows, HookSite site, StageTurn& turn) {
  std::vector<std::vector<TokenId>> ids;
  std::vector<int64_t> last;
  for (const int64_t row : batch_rows) {
    const LocatedPrompt& prompt = *rows[static_cast<size_t>(row)];
    ids.emplace_back(prompt.ids.begin(), prompt.ids.begin() + prompt.lookup + 1);
    last.push_back(prompt.lookup);
  }
  TokenBatch batch = make_batch(ids);
  batch.sequence.turn = &turn;
  batch.sequence.outputs_BO = torch::tensor(last, torch::kLong).unsqueeze(1);
  Tensor collected_BX;
  HookSet hooks;
  hooks.observe(site, [&](const Tensor& value_BTX) {
    const bool is_whole = site.point == HookPoint::kBlockIn;  // of all tokens; behind it, of the outputs alone
    const Tensor place_B11 = batch.sequence.outputs_BO.to(value_BTX.device()).unsqueeze(2);
    const Tensor value_B1X = is_whole ? value_BTX.take_along_dim(place_B11, 1) : value_BTX;
    collected_BX = value_B1X.squeeze(1);
  });
  hooks.stop_at(site);
  model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, site.layer + 1}, hooks);
  return collected_BX;
}

}  // namespace

Tensor collect_at(const CausalLM& model, std::span<const LocatedPrompt* const> rows, HookSite site,
                  Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  for (const LocatedPrompt* row : rows) lengths.push_back(row->lookup + 1);
  const Placement& placement = model.placement();
  return spread_rows(communicator, RowWork{placement, "keys"}, plan_batches(lengths, {.tokens = kForwardTokens}),
                     {placement.weight_dtype(), placement.device_of(site.layer)},
                     [&](const std::vector<int64_t>& batch_rows, StageTurn& turn) {
                       return collect_batch(model, rows, batch_rows, site, turn);
                     });
}

}  // namespace lancet
