#include "value_plan.h"

#include <torch/types.h>

#include <algorithm>
#include <bit>

#include "lancet/models/batching.h"
#include "lancet/runtime/collectives.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

constexpr int64_t kHostTokens = 512;
constexpr int64_t kAcceleratorTokens = 16384;

/// Tokens that a step runs for a request when its rows are as long as the longest: from the subject's last one on.
int64_t step_tokens(const PreparedRequest& request, const ValueOptions& options) {
  int64_t longest = 0;
  for (const LocatedPrompt& prompt : request.prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()) - prompt.lookup);
  const int64_t suffix = longest + static_cast<int64_t>(request.target.size()) - 1;
  const int64_t n_contexts = static_cast<int64_t>(request.prompts.size());
  const int64_t n_groups = value_groups(n_contexts, options.contexts_per_step);
  return (n_contexts + n_groups - 1) / n_groups * suffix + 1;
}

/// Log-probabilities, their gradient and the logits of one token that is read, in f32.
int64_t head_bytes(const ModelConfig& config) { return 3 * 4 * config.vocab_size; }

}  // namespace

int64_t value_groups(int64_t n_contexts, int64_t contexts_per_step) {
  if (contexts_per_step == 0) return 1;
  return (n_contexts + contexts_per_step - 1) / contexts_per_step;
}

RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator) {
  int64_t most_tokens = 0;
  communicator.together("values", [&] {
    if (communicator.is_root() && options.batch == 0) most_tokens = value_step_tokens(model, requests, layer, options);
  });
  most_tokens = broadcast_numbers(communicator, {most_tokens}).front();
  std::vector<int64_t> tokens;
  for (const PreparedRequest& request : requests) tokens.push_back(step_tokens(request, options));
  if (options.batch > 0) return plan_batches(tokens, {.rows = options.batch});
  return plan_batches(tokens, {.tokens = most_tokens});
}

std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches) {
  const auto padded_tokens = [&](const std::vector<int64_t>& indices) {
    int64_t longest = 0;
    for (const int64_t index : indices)
      longest = std::max(longest, step_tokens(requests[static_cast<size_t>(index)], options));
    return longest * static_cast<int64_t>(indices.size());
  };
  std::stable_sort(batches.begin(), batches.end(),
                   [&](const auto& a, const auto& b) { return padded_tokens(a) > padded_tokens(b); });
  batches.resize(std::min(batches.size(), static_cast<size_t>(n_batches)));
  std::vector<int64_t> heaviest;
  for (const std::vector<int64_t>& indices : batches) heaviest.insert(heaviest.end(), indices.begin(), indices.end());
  return heaviest;
}

int64_t value_step_tokens(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                          const ValueOptions& options) {
  const Placement& placement = model.placement();
  if (placement.is_host_only()) return kHostTokens;
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(placement.weight_dtype()));
  int64_t token_bytes = 1;
  for (const PreparedRequest& request : requests)
    token_bytes = std::max(token_bytes, value_bytes_per_token(model.config(), request, options, element_bytes));
  std::vector<std::pair<at::Device, int64_t>> bytes_on;  // per device, for one token on all its layers
  for (int64_t above = layer + 1; above < model.config().n_layers; ++above) {
    const at::Device device = placement.device_of(above);
    const auto at =
        std::find_if(bytes_on.begin(), bytes_on.end(), [&](const auto& entry) { return entry.first == device; });
    if (at == bytes_on.end())
      bytes_on.emplace_back(device, token_bytes);
    else
      at->second += token_bytes;
  }
  int64_t tokens = kAcceleratorTokens;
  for (const auto& [device, bytes] : bytes_on) {
    const int64_t head = device == placement.head_device() ? head_bytes(model.config()) : 0;
    if (const std::optional<int64_t> free = free_bytes(device)) tokens = std::min(tokens, *free / 2 / (bytes + head));
  }
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, tokens))));
}

int64_t value_bytes_per_token(const ModelConfig& config, const PreparedRequest& request, const ValueOptions& options,
                              int64_t element_bytes) {
  const int64_t heads = (config.n_heads + 2 * config.n_kv_heads) * config.head_dim;
  const int64_t activations = 2 * (3 * config.d_model + heads + 3 * config.d_ffn);
  int64_t prefix_tokens = request.drift.lookup;
  for (const LocatedPrompt& prompt : request.prompts) prefix_tokens += prompt.lookup;
  const int64_t prefix = prefix_tokens * 2 * config.n_kv_heads * config.head_dim / step_tokens(request, options);
  return element_bytes * (activations + prefix);
}

}  // namespace lancet
