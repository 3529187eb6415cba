#include "lancet/edit/values.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/host_workers.h"
#include "value_batch.h"

namespace lancet {
namespace {

/// Adam's state and the deltas of one batch. All on the edited layer's device, in the value dtype.
struct AdamState {
  Tensor delta_ND;
  Tensor first_ND;
  Tensor second_ND;

  explicit AdamState(const Tensor& initial_ND)
      : delta_ND(torch::zeros_like(initial_ND)),
        first_ND(torch::zeros_like(initial_ND)),
        second_ND(torch::zeros_like(initial_ND)) {}

  /// Update number `step` (from 1) of some rows, then the projection onto ||delta|| <= limit.
  void update(const Tensor& rows, const Tensor& gradient, const Tensor& limit_A, int64_t step, double lr) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
    const Tensor first = kBeta1 * first_ND.index_select(0, rows) + (1 - kBeta1) * gradient;
    const Tensor second = kBeta2 * second_ND.index_select(0, rows) + (1 - kBeta2) * gradient.square();
    const double n = static_cast<double>(step);
    const Tensor unbiased = first / (1 - std::pow(kBeta1, n));
    const Tensor scale = (second / (1 - std::pow(kBeta2, n))).sqrt() + kEps;
    Tensor delta = delta_ND.index_select(0, rows) - lr * unbiased / scale;
    const Tensor norm = delta.norm(2, 1);
    delta = delta * torch::where(norm > limit_A, limit_A / norm, torch::ones_like(norm)).unsqueeze(1);
    delta_ND.index_copy_(0, rows, delta);
    first_ND.index_copy_(0, rows, first);
    second_ND.index_copy_(0, rows, second);
  }
};

std::vector<double> to_doubles(const Tensor& values) {
  const Tensor host = values.detach().to(Placement::host(), torch::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

/// One batch of requests, optimised together. Results go to their places in the whole.
class BatchOptimizer {
 public:
  /// `indices`: places of the batch's requests in the whole.
  BatchOptimizer(const CausalLM& model, std::span<const PreparedRequest> requests, const std::vector<int64_t>& indices,
                 int64_t layer)
      : requests_(requests),
        indices_(indices),
        batch_(model, members(requests, indices), layer),
        adam_(batch_.initial_ND()) {}

  /// From start to end; returns z [N, D] in the batch's order.
  Tensor run(const ValueOptions& options, OptimizedValues& result, Progress& progress) {
    const Tensor initial_norm_N = batch_.initial_ND().norm(2, 1);
    for (int64_t step = 1;; ++step) {
      const std::vector<int64_t>& resident = batch_.resident();
      const Tensor rows = torch::tensor(resident, torch::kLong).to(adam_.delta_ND.device());
      const Tensor delta_AD = adam_.delta_ND.index_select(0, rows).requires_grad_(true);
      const Tensor norm_A = initial_norm_N.index_select(0, rows);
      const Tensor total_A = measure(delta_AD, norm_A, options, result);
      const std::vector<int64_t> left = step == options.steps ? std::vector<int64_t>{} : unfinished(options, result);
      progress.advance(n_active_ - static_cast<int64_t>(left.size()));
      n_active_ = static_cast<int64_t>(left.size());
      if (left.empty()) break;
      const Tensor gradient_AD = torch::autograd::grad({total_A.sum()}, {delta_AD})[0];
      const Tensor kept = torch::tensor(left, torch::kLong).to(rows.device());
      adam_.update(rows.index_select(0, kept), gradient_AD.index_select(0, kept),
                   options.clamp * norm_A.index_select(0, kept), step, options.lr);
      // Leaving costs a copy of the rest, and new shapes cost the matrix library a set-up: only when it is worth it.
      if (left.size() * 8 <= resident.size() * 7) batch_.keep(left);
    }
    note_norms(initial_norm_N, result);
    return batch_.initial_ND() + adam_.delta_ND;
  }

 private:
  static std::vector<const PreparedRequest*> members(std::span<const PreparedRequest> requests,
                                                     const std::vector<int64_t>& indices) {
    std::vector<const PreparedRequest*> chosen;
    for (const int64_t index : indices) chosen.push_back(&requests[static_cast<size_t>(index)]);
    return chosen;
  }

  size_t place(int64_t in_batch) const { return static_cast<size_t>(indices_[static_cast<size_t>(in_batch)]); }

  /// The resident requests' total losses [A], differentiable; notes those of the unfinished ones and their parts.
  Tensor measure(const Tensor& delta_AD, const Tensor& norm_A, const ValueOptions& options, OptimizedValues& result) {
    const BatchLosses losses = batch_.losses(delta_AD);
    const Tensor kl_A = options.kl * losses.kl_A;
    const Tensor decay_A = (options.weight_decay * delta_AD.norm(2, 1) / norm_A.square()).to(losses.nll_A.device());
    const Tensor total_A = losses.nll_A + kl_A + decay_A;
    const std::vector<double> nll = to_doubles(losses.nll_A), kl = to_doubles(kl_A), decay = to_doubles(decay_A);
    const std::vector<double> total = to_doubles(total_A);
    for (size_t a = 0; a < total.size(); ++a) {
      const size_t request = place(batch_.resident()[a]);
      if (is_finished(request, options, result)) continue;
      if (!std::isfinite(total[a]))
        throw NumericError(cat("request ", requests_[request].id, ": the loss is ", total[a],
                               " during value optimisation. Lower editor.values.lr, or run in f32"));
      result.losses[request].push_back({total[a], nll[a], kl[a], decay[a]});
    }
    return total_A;
  }

  static bool is_finished(size_t request, const ValueOptions& options, const OptimizedValues& result) {
    return !result.losses[request].empty() && result.losses[request].back().total < options.stop_loss;
  }

  /// Indices into the resident requests.
  std::vector<int64_t> unfinished(const ValueOptions& options, const OptimizedValues& result) const {
    std::vector<int64_t> left;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      if (!is_finished(place(batch_.resident()[a]), options, result)) left.push_back(static_cast<int64_t>(a));
    return left;
  }

  void note_norms(const Tensor& initial_norm_N, OptimizedValues& result) const {
    const std::vector<double> initial = to_doubles(initial_norm_N), delta = to_doubles(adam_.delta_ND.norm(2, 1));
    for (size_t i = 0; i < indices_.size(); ++i) {
      result.initial_norms[place(static_cast<int64_t>(i))] = initial[i];
      result.delta_norms[place(static_cast<int64_t>(i))] = delta[i];
    }
  }

  std::span<const PreparedRequest> requests_;
  const std::vector<int64_t>& indices_;
  ValueBatch batch_;
  AdamState adam_;
  int64_t n_active_ = static_cast<int64_t>(indices_.size());
};

/// Tokens from the subject's last one to the end of the longest row: what a step has to run.
int64_t suffix_tokens(const PreparedRequest& request) {
  int64_t longest = 0;
  for (const LocatedPrompt& prompt : request.prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()) - prompt.lookup);
  return longest + static_cast<int64_t>(request.target.size()) - 1;
}

/// Requests of similar suffix length together, so that little of a batch is padding.
std::vector<std::vector<int64_t>> plan_value_batches(std::span<const PreparedRequest> requests, int64_t batch) {
  std::vector<int64_t> order(requests.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto suffix = [&](int64_t index) { return suffix_tokens(requests[static_cast<size_t>(index)]); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return suffix(a) < suffix(b); });
  std::vector<std::vector<int64_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(batch)) {
    const size_t end = std::min(begin + static_cast<size_t>(batch), order.size());
    batches.emplace_back(order.begin() + static_cast<int64_t>(begin), order.begin() + static_cast<int64_t>(end));
  }
  return batches;
}

}  // namespace

ValueOptions parse_value_options(ConfigSection section) {
  const ValueOptions defaults;
  constexpr ConfigRange<double> kNotNegative{.min = 0.0};
  ValueOptions options;
  options.steps = section.integer("steps", {.min = 1}, defaults.steps);
  options.lr = section.number("lr", {.min = 1e-12}, defaults.lr);
  options.weight_decay = section.number("weight_decay", kNotNegative, defaults.weight_decay);
  options.clamp = section.number("clamp", {.min = 1e-12}, defaults.clamp);
  options.kl = section.number("kl", kNotNegative, defaults.kl);
  options.stop_loss = section.number("stop_loss", kNotNegative, defaults.stop_loss);
  options.batch = section.integer("batch", {.min = 1}, defaults.batch);
  section.finish();
  return options;
}

OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options) {
  OptimizedValues result;
  result.losses.resize(requests.size());
  result.initial_norms.resize(requests.size());
  result.delta_norms.resize(requests.size());
  const std::vector<std::vector<int64_t>> batches = plan_value_batches(requests, options.batch);
  std::vector<Tensor> parts(batches.size());
  Progress progress("values", static_cast<int64_t>(requests.size()), "requests");
  run_independent(model.placement(), static_cast<int64_t>(batches.size()), [&](int64_t i) {
    const size_t at = static_cast<size_t>(i);
    parts[at] = BatchOptimizer(model, requests, batches[at], layer).run(options, result, progress);
  });
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& indices : batches) order.insert(order.end(), indices.begin(), indices.end());
  const torch::NoGradGuard no_grad;
  result.z_ND = in_place_order(parts, order);
  return result;
}

}  // namespace lancet
