#include "lancet/models/generate.h"

#include <torch/types.h>

#include <algorithm>

#include "generate_batch.h"
#include "lancet/runtime/host_workers.h"

namespace lancet {

std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options) {
  options.sampling.check();
  std::vector<int64_t> lengths;
  for (const GenerateRow& row : rows) lengths.push_back(static_cast<int64_t>(row.prompt.size()) + row.max_new_tokens);
  std::vector<std::vector<TokenId>> out(rows.size());
  const int64_t batch_tokens = std::max<int64_t>(1, options.batch_tokens / model.placement().batches_under_way());
  const std::vector<std::vector<int64_t>> batches = plan_batches(lengths, {.tokens = batch_tokens});
  run_overlapped(model.placement(), static_cast<int64_t>(batches.size()), [&](int64_t i) {
    const torch::NoGradGuard no_grad;
    GenerateBatch batch(model, rows, batches[static_cast<size_t>(i)], options);
    while (batch.next(out)) continue;
  });
  return out;
}

}  // namespace lancet
