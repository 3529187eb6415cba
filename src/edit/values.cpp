#include "lancet/edit/values.h"

#include <torch/types.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/edit/value_store.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/runtime/memory.h"
#include "value_optimizer.h"
#include "value_plan.h"

namespace lancet {
namespace {

/// The batches of one call, several at a time perhaps, each over other requests.
class ValueRun {
 public:
  ValueRun(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer, const ValueOptions& options,
           const ValueStore* store)
      : model_(model), requests_(requests), layer_(layer), options_(options), store_(store) {
    const size_t n = requests.size();
    whole_.losses.resize(n);
    whole_.initial_norms.resize(n);
    whole_.delta_norms.resize(n);
  }

  OptimizedValues run() {
    const std::vector<std::vector<int64_t>> batches = plan_value_batches(model_, requests_, layer_, options_.batch);
    std::vector<Tensor> parts(batches.size());
    run_independent(model_.placement(), static_cast<int64_t>(batches.size()),
                    [&](int64_t i) { parts[static_cast<size_t>(i)] = run_batch(batches[static_cast<size_t>(i)]); });
    std::vector<int64_t> order;
    for (const std::vector<int64_t>& indices : batches) order.insert(order.end(), indices.begin(), indices.end());
    progress_.finish();
    if (whole_.batching.resumed > 0)
      log_line(cat("values  ", whole_.batching.resumed, " requests taken from an interrupted run"));
    const torch::NoGradGuard no_grad;
    whole_.z_ND = in_place_order(parts, order);
    return std::move(whole_);
  }

 private:
  /// z [N, D] of the requests at `indices`, in that order; the rest of the results goes to its places in the whole.
  Tensor run_batch(const std::vector<int64_t>& indices) {
    std::vector<const PreparedRequest*> batch;
    for (const int64_t index : indices) batch.push_back(&requests_[static_cast<size_t>(index)]);
    std::optional<OptimizedValues> values;
    if (store_ != nullptr) values = store_->load(batch, layer_, options_);
    if (values) {
      values->batching.resumed = static_cast<int64_t>(batch.size());
      progress_.advance(values->batching.resumed);
    } else {
      values = optimize(batch);
      if (!values) return run_halves(indices);
      if (store_ != nullptr) store_->save(batch, layer_, options_, *values);
    }
    note(indices, *values);
    return values->z_ND.to(model_.placement().device_of(layer_));
  }

  /// nullopt when memory does not suffice.
  std::optional<OptimizedValues> optimize(const std::vector<const PreparedRequest*>& batch) {
    int64_t finished = 0;
    try {
      return optimize_batch(model_, batch, layer_, options_, [&](int64_t more) {
        finished += more;
        progress_.advance(more);
      });
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      progress_.advance(-finished);
      if (batch.size() == 1)
        throw PlacementError(
            cat("values: request ", batch[0]->id, ": not enough memory on ", model_.placement().description(),
                " even for this request alone. Run on a device with more memory, in bf16, or with fewer "
                "or shorter editor.contexts"));
      return std::nullopt;
    }
  }

  Tensor run_halves(const std::vector<int64_t>& indices) {
    log_warning(cat("values: not enough memory for ", indices.size(), " requests together: trying half as many"));
    {
      const std::lock_guard lock(mutex_);
      ++whole_.batching.halvings;
    }
    const auto middle = indices.begin() + static_cast<int64_t>(indices.size() / 2);
    return torch::cat({run_batch({indices.begin(), middle}), run_batch({middle, indices.end()})});
  }

  void note(const std::vector<int64_t>& indices, OptimizedValues& values) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const size_t place = static_cast<size_t>(indices[i]);
      whole_.losses[place] = std::move(values.losses[i]);
      whole_.initial_norms[place] = values.initial_norms[i];
      whole_.delta_norms[place] = values.delta_norms[i];
    }
    const std::lock_guard lock(mutex_);
    ValueBatching& batching = whole_.batching;
    batching.batches += 1;
    batching.largest = std::max(batching.largest, static_cast<int64_t>(indices.size()));
    batching.resumed += values.batching.resumed;
  }

  const CausalLM& model_;
  std::span<const PreparedRequest> requests_;
  int64_t layer_;
  const ValueOptions& options_;
  const ValueStore* store_;
  OptimizedValues whole_;
  std::mutex mutex_;  // of what is not a request's own in whole_
  Progress progress_{"values", static_cast<int64_t>(requests_.size()), "requests"};
};

}  // namespace

ValueOptions parse_value_options(ConfigSection section, const ValueOptions& defaults) {
  constexpr ConfigRange<double> kNotNegative{.min = 0.0};
  ValueOptions options = defaults;
  options.steps = section.integer("steps", {.min = 1}, defaults.steps);
  options.lr = section.number("lr", {.min = 1e-12}, defaults.lr);
  options.weight_decay = section.number("weight_decay", kNotNegative, defaults.weight_decay);
  options.clamp = section.number("clamp", {.min = 1e-12}, defaults.clamp);
  options.kl = section.number("kl", kNotNegative, defaults.kl);
  options.stop_loss = section.number("stop_loss", kNotNegative, defaults.stop_loss);
  options.batch = section.integer("batch", {.min = 0}, defaults.batch);
  if (options.site == ValueSite::kMlpAndAttnOut)
    options.nll_factor = section.number("nll_factor", {.min = 1e-12}, defaults.nll_factor);
  section.finish();
  return options;
}

OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options, const ValueStore* store) {
  return ValueRun(model, requests, layer, options, store).run();
}

}  // namespace lancet
