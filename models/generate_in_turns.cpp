#include <torch/types.h>

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "generate_batch.h"

namespace lancet {
namespace {

/// The row with one set of the weights. It has its own keys and values, and the random numbers of a row that is
/// generated alone.
struct Turn {
  Turn(const CausalLM& model, const GenerateRow& row, int64_t number, const GenerateOptions& all)
      : options(all), batch(model, std::span(&row, 1), {0}, options) {
    if (all.on_token) options.on_token = [&all, number](int64_t, TokenId id) { all.on_token(number, id); };
    if (all.ends)
      options.ends = [&all, number](int64_t, std::span<const TokenId> added) { return all.ends(number, added); };
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  GenerateOptions options;
  GenerateBatch batch;
  std::vector<std::vector<TokenId>> ids{1};
  bool goes_on = true;
};

}  // namespace

std::vector<std::vector<TokenId>> generate_in_turns(const CausalLM& model, const GenerateRow& row, int64_t n_weights,
                                                    const std::function<void(int64_t i)>& put,
                                                    const GenerateOptions& options) {
  options.sampling.check();
  const torch::NoGradGuard no_grad;
  std::vector<std::unique_ptr<Turn>> turns;
  for (int64_t i = 0; i < n_weights; ++i) turns.push_back(std::make_unique<Turn>(model, row, i, options));
  for (bool some_go_on = true; some_go_on;) {
    some_go_on = false;
    for (int64_t i = 0; i < n_weights; ++i) {
      Turn& turn = *turns[static_cast<size_t>(i)];
      if (!turn.goes_on) continue;
      put(i);
      turn.goes_on = turn.batch.next(turn.ids);
      some_go_on = some_go_on || turn.goes_on;
    }
  }
  std::vector<std::vector<TokenId>> ids;
  for (const std::unique_ptr<Turn>& turn : turns) ids.push_back(std::move(turn->ids[0]));
  return ids;
}

}  // namespace lancet
