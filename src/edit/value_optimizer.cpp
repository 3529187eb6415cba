#include "value_optimizer.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
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

class BatchOptimizer {
 public:
  BatchOptimizer(const CausalLM& model, const std::vector<const PreparedRequest*>& requests, int64_t layer,
                 const ValueOptions& options)
      : requests_(requests),
        options_(options),
        batch_(model, requests, layer, options.contexts_per_step),
        adam_(batch_.initial_ND()) {
    result_.losses.resize(requests.size());
  }

  OptimizedValues run(const std::function<void(int64_t)>& note_finished) {
    const Tensor initial_norm_N = batch_.initial_ND().norm(2, 1);
    size_t n_active = requests_.size();
    for (int64_t step = 1;; ++step) {
      const std::vector<int64_t>& resident = batch_.resident();
      const Tensor rows = torch::tensor(resident, torch::kLong).to(adam_.delta_ND.device());
      const Tensor delta_AD = adam_.delta_ND.index_select(0, rows).requires_grad_(true);
      const Tensor norm_A = initial_norm_N.index_select(0, rows);
      const Tensor total_A = measure(delta_AD, norm_A);
      const std::vector<int64_t> left = step == options_.steps ? std::vector<int64_t>{} : unfinished();
      note_finished(static_cast<int64_t>(n_active - left.size()));
      n_active = left.size();
      if (left.empty()) break;
      const Tensor gradient_AD = torch::autograd::grad({total_A.sum()}, {delta_AD})[0];
      const Tensor kept = torch::tensor(left, torch::kLong).to(rows.device());
      adam_.update(rows.index_select(0, kept), gradient_AD.index_select(0, kept),
                   options_.clamp * norm_A.index_select(0, kept), step, options_.lr);
      // Leaving costs a copy of the rest, and new shapes cost the matrix library a set-up: only when it is worth it.
      if (left.size() * 8 <= resident.size() * 7) batch_.keep(left);
    }
    const torch::NoGradGuard no_grad;
    result_.initial_norms = to_doubles(initial_norm_N);
    result_.delta_norms = to_doubles(adam_.delta_ND.norm(2, 1));
    result_.z_ND = batch_.initial_ND() + adam_.delta_ND;
    return std::move(result_);
  }

 private:
  std::vector<ValueLoss>& losses_of(size_t in_residents) {
    return result_.losses[static_cast<size_t>(batch_.resident()[in_residents])];
  }

  /// The resident requests' total losses [A], differentiable; notes those of the unfinished ones and their parts.
  Tensor measure(const Tensor& delta_AD, const Tensor& norm_A) {
    const BatchLosses losses = batch_.losses(delta_AD);
    const Tensor kl_A = options_.kl * losses.kl_A;
    const Tensor decay_A = (options_.weight_decay * delta_AD.norm(2, 1) / norm_A.square()).to(losses.nll_A.device());
    const Tensor total_A = losses.nll_A + kl_A + decay_A;
    const std::vector<double> nll = to_doubles(losses.nll_A), kl = to_doubles(kl_A), decay = to_doubles(decay_A);
    const std::vector<double> total = to_doubles(total_A);
    for (size_t a = 0; a < total.size(); ++a) {
      if (is_finished(losses_of(a))) continue;
      if (!std::isfinite(total[a]))
        throw NumericError(cat("request ", requests_[static_cast<size_t>(batch_.resident()[a])]->id, ": the loss is ",
                               total[a], " during value optimisation. Lower editor.values.lr, or run in f32"));
      losses_of(a).push_back({total[a], nll[a], kl[a], decay[a]});
    }
    return total_A;
  }

  /// By the mean over the last steps that saw every context once.
  bool is_finished(const std::vector<ValueLoss>& losses) const {
    if (losses.size() < batch_.groups()) return false;
    double sum = 0;
    for (auto loss = losses.end() - static_cast<int64_t>(batch_.groups()); loss != losses.end(); ++loss)
      sum += loss->total;
    return sum < options_.stop_loss * static_cast<double>(batch_.groups());
  }

  /// Indices into the resident requests.
  std::vector<int64_t> unfinished() {
    std::vector<int64_t> left;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      if (!is_finished(losses_of(a))) left.push_back(static_cast<int64_t>(a));
    return left;
  }

  const std::vector<const PreparedRequest*>& requests_;
  const ValueOptions& options_;
  ValueBatch batch_;
  AdamState adam_;
  OptimizedValues result_;
};

}  // namespace

OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options,
                               const std::function<void(int64_t)>& note_finished) {
  return BatchOptimizer(model, requests, layer, options).run(note_finished);
}

}  // namespace lancet
