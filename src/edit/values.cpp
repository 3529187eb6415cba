#include "lancet/edit/values.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
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

void append_losses(OptimizedValues& result, int64_t first_request, const std::vector<int64_t>& active,
                   const std::vector<Tensor>& parts, std::span<const PreparedRequest> requests) {
  const std::vector<double> nll = to_doubles(parts[0]), kl = to_doubles(parts[1]), decay = to_doubles(parts[2]);
  const std::vector<double> total = to_doubles(parts[3]);
  for (size_t a = 0; a < active.size(); ++a) {
    if (!std::isfinite(total[a]))
      throw NumericError(cat("request ", requests[static_cast<size_t>(active[a])].id, ": the loss is ", total[a],
                             " during value optimisation. Lower editor.values.lr, or run in f32"));
    result.losses[static_cast<size_t>(first_request + active[a])].push_back({total[a], nll[a], kl[a], decay[a]});
  }
}

/// One batch from start to end. Returns its z [N, D]; appends to the result's losses.
Tensor optimize_batch(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t first_request,
                      int64_t layer, const ValueOptions& options, OptimizedValues& result, Progress& progress) {
  ValueBatch batch(model, requests, layer);
  AdamState adam(batch.initial_ND());
  const Tensor initial_norm_N = batch.initial_ND().norm(2, 1);
  std::vector<int64_t> active(requests.size());
  for (size_t i = 0; i < active.size(); ++i) active[i] = static_cast<int64_t>(i);

  for (int64_t step = 1; step <= options.steps && !active.empty(); ++step) {
    const Tensor rows = torch::tensor(active, torch::kLong).to(adam.delta_ND.device());
    Tensor delta_AD = adam.delta_ND.index_select(0, rows).requires_grad_(true);
    const BatchLosses losses = batch.losses(active, delta_AD);
    const Tensor norm_A = initial_norm_N.index_select(0, rows);
    const Tensor decay_A = (options.weight_decay * delta_AD.norm(2, 1) / norm_A.square()).to(losses.nll_A.device());
    const Tensor kl_A = options.kl * losses.kl_A;
    const Tensor total_A = losses.nll_A + kl_A + decay_A;
    append_losses(result, first_request, active, {losses.nll_A, kl_A, decay_A, total_A}, requests);

    std::vector<int64_t> kept, kept_rows;
    for (size_t a = 0; a < active.size(); ++a) {
      if (result.losses[static_cast<size_t>(first_request + active[a])].back().total < options.stop_loss) continue;
      kept.push_back(active[a]);
      kept_rows.push_back(static_cast<int64_t>(a));
    }
    progress.advance(static_cast<int64_t>(active.size() - (step == options.steps ? 0 : kept.size())));
    if (step == options.steps || kept.empty()) break;
    const Tensor gradient_AD = torch::autograd::grad({total_A.sum()}, {delta_AD})[0];
    const Tensor among_active = torch::tensor(kept_rows, torch::kLong).to(rows.device());
    adam.update(rows.index_select(0, among_active), gradient_AD.index_select(0, among_active),
                options.clamp * norm_A.index_select(0, among_active), step, options.lr);
    active = std::move(kept);
  }
  for (const double norm : to_doubles(initial_norm_N)) result.initial_norms.push_back(norm);
  for (const double norm : to_doubles(adam.delta_ND.norm(2, 1))) result.delta_norms.push_back(norm);
  return batch.initial_ND() + adam.delta_ND;
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
  std::vector<Tensor> parts;
  Progress progress("values", static_cast<int64_t>(requests.size()), "requests");
  const size_t batch_size = static_cast<size_t>(options.batch);
  for (size_t begin = 0; begin < requests.size(); begin += batch_size) {
    const size_t size = std::min(batch_size, requests.size() - begin);
    parts.push_back(optimize_batch(model, requests.subspan(begin, size), static_cast<int64_t>(begin), layer, options,
                                   result, progress));
  }
  const torch::NoGradGuard no_grad;
  result.z_ND = torch::cat(parts);
  return result;
}

}  // namespace lancet
