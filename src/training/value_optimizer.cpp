#include "value_optimizer.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>

#include "adam.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/finite.h"
#include "value_batch.h"

namespace lancet {
namespace {

/// The deltas of one batch and Adam's moments of them. All on the edited layer's device, in the value dtype.
struct AdamState {
  Tensor delta_NX;
  Tensor first_NX;
  Tensor second_NX;

  explicit AdamState(const Tensor& initial_NX)
      : delta_NX(torch::zeros_like(initial_NX)),
        first_NX(torch::zeros_like(initial_NX)),
        second_NX(torch::zeros_like(initial_NX)) {}

  /// One update of some rows, then the projection of each vector onto ||delta|| <= its limit. Returns the norms from
  /// before the projection, which would hide that one is infinite: [rows, P].
  Tensor update(const Tensor& rows, const Tensor& gradient, const Tensor& limit_AP, AdamStep step) {
    Tensor first = first_NX.index_select(0, rows), second = second_NX.index_select(0, rows);
    Tensor delta = delta_NX.index_select(0, rows) - adam_change(first, second, gradient, step);
    const Tensor norm_AP = norms(delta, limit_AP.size(1));
    const Tensor shrink_AP = torch::where(norm_AP > limit_AP, limit_AP / norm_AP, torch::ones_like(norm_AP));
    delta = (delta.unflatten(1, {limit_AP.size(1), -1}) * shrink_AP.unsqueeze(2)).flatten(1);
    delta_NX.index_copy_(0, rows, delta);
    first_NX.index_copy_(0, rows, first);
    second_NX.index_copy_(0, rows, second);
    return norm_AP;
  }

  /// Of each of the `n_vectors` that lie side by side in a row: [N, P].
  static Tensor norms(const Tensor& rows_NX, int64_t n_vectors) {
    return rows_NX.unflatten(1, {n_vectors, -1}).norm(2, 2);
  }
};

/// PMET's public code: what the NLL counts while every target token is predicted, and the weighted KL that then is
/// small enough to stop.
constexpr double kPredictedFactor = 0.1, kPredictedKl = 0.01;

class BatchOptimizer {
 public:
  BatchOptimizer(const CausalLM& model, const std::vector<const PreparedRequest*>& requests, int64_t layer,
                 const ValueOptions& options)
      : model_(model),
        requests_(requests),
        options_(options),
        n_vectors_(vectors_of(options.site)),
        batch_(model, requests, layer, options),
        adam_(batch_.initial_NX()),
        is_done_(requests.size(), 0),
        predicted_steps_(requests.size(), 0) {
    result_.losses.resize(requests.size());
  }

  OptimizedValues run(const std::function<void(int64_t)>& note_step) {
    const Tensor initial_norm_NP = AdamState::norms(batch_.initial_NX(), n_vectors_);
    size_t n_active = requests_.size();
    for (int64_t step = 1;; ++step) {
      const std::vector<int64_t>& resident = batch_.resident();
      const Tensor rows = to_index(resident, adam_.delta_NX.device());
      const Tensor delta_AX = adam_.delta_NX.index_select(0, rows).requires_grad_(true);
      const Tensor norm_AP = initial_norm_NP.index_select(0, rows);
      const Tensor total_A = measure(delta_AX, norm_AP);
      const std::vector<int64_t> left = step == options_.steps ? std::vector<int64_t>{} : unfinished();
      note_step(static_cast<int64_t>(n_active - left.size()));
      n_active = left.size();
      if (left.empty()) break;
      const Tensor gradient_AX = torch::autograd::grad({total_A.sum()}, {delta_AX})[0];
      const Tensor kept = to_index(left, rows.device());
      check_update(left, adam_.update(rows.index_select(0, kept), gradient_AX.index_select(0, kept),
                                      options_.clamp * norm_AP.index_select(0, kept), {step, options_.lr}));
      // Leaving costs a copy of the rest, and new shapes cost the matrix library a set-up: only when it is worth it.
      if (left.size() * 8 <= resident.size() * 7) batch_.keep(left);
    }
    const torch::NoGradGuard no_grad;
    const auto of_z = [&](const Tensor& rows_NX) { return rows_NX.chunk(n_vectors_, 1)[0]; };
    result_.initial_norms = to_doubles(initial_norm_NP.select(1, 0));
    result_.delta_norms = to_doubles(of_z(adam_.delta_NX).norm(2, 1));
    result_.z_ND = of_z(batch_.initial_NX()) + of_z(adam_.delta_NX);
    return std::move(result_);
  }

 private:
  size_t request_of(size_t in_residents) const { return static_cast<size_t>(batch_.resident()[in_residents]); }

  /// The resident requests' total losses [A], differentiable; notes those of the unfinished ones and their parts, and
  /// who is done.
  Tensor measure(const Tensor& delta_AX, const Tensor& norm_AP) {
    const bool watches = options_.stop == ValueStop::kLossOrPredicted;
    const BatchLosses losses = batch_.losses(delta_AX, watches ? ValueWatch::kMissedTokens : ValueWatch::kNothing);
    const Tensor nll_A =
        options_.site == ValueSite::kMlpAndAttnOut ? losses.nll_A * factors(losses.nll_A) : losses.nll_A;
    const Tensor kl_A = options_.kl * losses.kl_A;
    const Tensor decay_A = (options_.weight_decay * AdamState::norms(delta_AX, n_vectors_) / norm_AP.square()).sum(1);
    const Tensor total_A = nll_A + kl_A + decay_A.to(nll_A.device());
    const std::vector<double> total = to_doubles(total_A), nll = to_doubles(nll_A), kl = to_doubles(kl_A);
    const std::vector<double> decay = to_doubles(decay_A);
    const std::vector<double> missed = watches ? to_doubles(losses.missed_A) : std::vector<double>(total.size(), 1.0);
    for (size_t a = 0; a < total.size(); ++a)
      if (is_done_[request_of(a)] == 0) note(request_of(a), {total[a], nll[a], kl[a], decay[a]}, missed[a]);
    return total_A;
  }

  /// `updated`: which of the resident requests; their changes' norms.
  void check_update(const std::vector<int64_t>& updated, const Tensor& norm_AP) const {
    if (norm_AP.isfinite().all().item<bool>()) return;
    const std::vector<double> norms = to_doubles(norm_AP.amax(1));
    for (size_t i = 0; i < updated.size(); ++i)
      if (!std::isfinite(norms[i]))
        throw NumericError(cat("request ", requests_[request_of(static_cast<size_t>(updated[i]))]->id,
                               ": the value's change has the norm ", norms[i], " in value optimisation, at ",
                               "editor.values.lr: ", options_.lr, ". Lower it"));
  }

  void note(size_t request, const ValueLoss& loss, double missed_tokens) {
    if (!std::isfinite(loss.total)) throw bad_loss(request, loss.total);
    result_.losses[request].push_back(loss);
    predicted_steps_[request] = missed_tokens == 0 ? predicted_steps_[request] + 1 : 0;
    is_done_[request] = is_low(result_.losses[request]) || (is_predicted(request) && loss.kl <= kPredictedKl) ? 1 : 0;
  }

  /// The first loss is the model's own.
  NumericError bad_loss(size_t request, double loss) const {
    const std::string what = cat("request ", requests_[request]->id, ": the loss is ", loss, " in value optimisation");
    if (result_.losses[request].empty()) return not_finite(model_, what, wider_dtype(model_));
    return NumericError(cat(what, ". Lower editor.values.lr: ", options_.lr, ", or set run.dtype: f32"));
  }

  /// By the mean over the last steps that saw every context once.
  bool is_low(const std::vector<ValueLoss>& losses) const {
    if (losses.size() < batch_.groups()) return false;
    double sum = 0;
    for (auto loss = losses.end() - static_cast<int64_t>(batch_.groups()); loss != losses.end(); ++loss)
      sum += loss->total;
    return sum < options_.stop_loss * static_cast<double>(batch_.groups());
  }

  /// In every context, as far as the last steps that saw each once say.
  bool is_predicted(size_t request) const { return predicted_steps_[request] >= batch_.groups(); }

  /// What the resident requests' NLLs count: [A], as `like`.
  Tensor factors(const Tensor& like) const {
    std::vector<double> factors;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      factors.push_back(options_.nll_factor * (is_predicted(request_of(a)) ? kPredictedFactor : 1.0));
    return torch::tensor(factors, torch::kDouble).to(like.device(), like.scalar_type());
  }

  /// Indices into the resident requests.
  std::vector<int64_t> unfinished() {
    std::vector<int64_t> left;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      if (is_done_[request_of(a)] == 0) left.push_back(static_cast<int64_t>(a));
    return left;
  }

  const CausalLM& model_;
  const std::vector<const PreparedRequest*>& requests_;
  const ValueOptions& options_;
  int64_t n_vectors_;
  ValueBatch batch_;
  AdamState adam_;
  std::vector<char> is_done_;
  std::vector<size_t> predicted_steps_;  ///< on end, up to the last one, in which every target token was predicted
  OptimizedValues result_;
};

}  // namespace

OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options,
                               const std::function<void(int64_t)>& note_step) {
  return BatchOptimizer(model, requests, layer, options).run(note_step);
}

}  // namespace lancet
