#include "value_optimizer.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/finite.h"
#include "lancet/runtime/send.h"
#include "lancet/training/adam.h"
#include "value_batch.h"

namespace lancet {
namespace {

/// The resident requests' deltas and Adam's moments of them, all on the edited layer's device, in the value dtype.
struct AdamState {
  Tensor delta_AX;
  Tensor first_AX;
  Tensor second_AX;

  explicit AdamState(const Tensor& initial_NX)
      : delta_AX(torch::zeros_like(initial_NX)),
        first_AX(torch::zeros_like(initial_NX)),
        second_AX(torch::zeros_like(initial_NX)) {}

  /// Makes one update, and then projects each vector onto ||delta|| <= its limit. `is_active_A1`: other rows keep their
  /// deltas; undefined: all are active. Returns the norms from before the projection, which would hide that one is
  /// infinite: [A, P].
  Tensor update(const Tensor& gradient_AX, const Tensor& limit_AP, const Tensor& is_active_A1, AdamStep step) {
    const Tensor changed_AX = delta_AX - adam_change(first_AX, second_AX, gradient_AX, step);
    const Tensor norm_AP = norms_of(changed_AX, limit_AP.size(1));
    const Tensor shrink_AP = torch::where(norm_AP > limit_AP, limit_AP / norm_AP, 1.0);
    const Tensor projected_AX = (changed_AX.unflatten(1, {limit_AP.size(1), -1}) * shrink_AP.unsqueeze(2)).flatten(1);
    delta_AX = is_active_A1.defined() ? torch::where(is_active_A1, projected_AX, delta_AX) : projected_AX;
    return norm_AP;
  }

  void keep(const Tensor& rows) {
    for (Tensor* state : {&delta_AX, &first_AX, &second_AX}) *state = state->index_select(0, rows);
  }
};

/// From PMET's public code: the factor of the NLL while every target token is predicted, and the weighted KL below
/// which the request may then stop.
constexpr double kPredictedFactor = 0.1, kPredictedKl = 0.01;

/// Returns null if steps are launched operation by operation.
std::unique_ptr<StepGraphs> graphs_for(const Placement& placement, LaunchMode launch) {
  return launch == LaunchMode::kGraph ? graph_maker().begin(placement.head_device()) : nullptr;
}

class BatchOptimizer {
 public:
  BatchOptimizer(const CausalLM& model, const std::vector<const PreparedRequest*>& requests, int64_t layer,
                 const ValueOptions& options, LaunchMode launch)
      : graphs_(graphs_for(model.placement(), launch)),
        model_(model),
        requests_(requests),
        options_(options),
        n_vectors_(vectors_of(options.site)),
        batch_(model, requests, layer, options),
        step_(batch_, options, options.stop == ValueStop::kLoss ? ValueWatch::kNothing : ValueWatch::kMissedTokens,
              graphs_.get()),
        adam_(batch_.initial_NX()),
        is_done_(requests.size(), 0),
        predicted_steps_(requests.size(), 0) {
    result_.losses.resize(requests.size());
  }

  OptimizedValues run(const std::function<void(int64_t)>& note_step) {
    const Tensor initial_norm_NP = norms_of(batch_.initial_NX(), n_vectors_);
    initial_norm_AP_ = initial_norm_NP;
    Tensor delta_NX = torch::zeros_like(adam_.delta_AX);  // of requests that have left
    size_t n_active = requests_.size();
    for (int64_t step = 1;; ++step) {
      measure();
      const std::vector<int64_t> left = step == options_.most_steps() ? std::vector<int64_t>{} : unfinished();
      note_step(static_cast<int64_t>(n_active - left.size()));
      if (left.empty()) break;
      if (left.size() < n_active) set_active(left);
      n_active = left.size();
      update(step);
      if (may_leave(batch_.resident().size() - left.size())) {
        const torch::NoGradGuard no_grad;
        put_back(delta_NX);
        keep(left);
      }
    }
    const torch::NoGradGuard no_grad;
    put_back(delta_NX);
    const auto of_z = [&](const Tensor& rows_NX) { return rows_NX.chunk(n_vectors_, 1)[0]; };
    result_.initial_norms = to_doubles(initial_norm_NP.select(1, 0));
    result_.delta_norms = to_doubles(of_z(delta_NX).norm(2, 1));
    result_.delta_ND = of_z(delta_NX).contiguous();
    result_.z_ND = of_z(batch_.initial_NX()) + result_.delta_ND;
    if (graphs_ != nullptr)
      for (const Tensor& found_ND : {result_.z_ND, result_.delta_ND}) graphs_->hand_over(found_ND);
    return std::move(result_);
  }

 private:
  /// Whether it is worth removing this many finished requests, which costs a copy of the rest. New shapes cost a set-up
  /// (of a graph, of a device's libraries, or of products of short numbers), so some requests leave together.
  bool may_leave(size_t done) const {
    const Placement& on = model_.placement();
    const bool is_set_up = graphs_ || !on.is_host_only() || c10::elementSize(on.weight_dtype()) < 4;
    return done * (is_set_up ? 8 : batch_.resident().size()) >= batch_.resident().size();
  }

  size_t request_of(size_t in_residents) const { return static_cast<size_t>(batch_.resident()[in_residents]); }

  /// Copies the resident requests' deltas to their places.
  void put_back(Tensor& delta_NX) const {
    delta_NX.index_copy_(0, to_index(batch_.resident(), delta_NX.device()), adam_.delta_AX);
  }

  /// `left`: which of the resident requests are not finished.
  void set_active(const std::vector<int64_t>& left) {
    std::vector<int64_t> is_active(batch_.resident().size());
    for (const int64_t a : left) is_active[static_cast<size_t>(a)] = 1;
    is_active_A1_ = to_index(is_active, adam_.delta_AX.device()).unsqueeze(1).to(torch::kBool);
  }

  void update(int64_t step) {
    const Tensor gradient_AX = step_.gradient();
    const torch::NoGradGuard no_grad;
    update_norm_A_ =
        adam_.update(gradient_AX, options_.clamp * initial_norm_AP_, is_active_A1_, {step, options_.lr}).amax(1);
  }

  void keep(const std::vector<int64_t>& left) {
    step_.forget_shapes();
    const Tensor rows = to_index(left, adam_.delta_AX.device());
    adam_.keep(rows);
    initial_norm_AP_ = initial_norm_AP_.index_select(0, rows);
    update_norm_A_ = update_norm_A_.index_select(0, rows);
    is_active_A1_ = Tensor();
    batch_.keep(left);
    factor_A_ = Tensor();
  }

  /// Notes the unfinished requests' losses, and which requests are finished. The host reads everything of a step at
  /// once.
  void measure() {
    std::vector<Tensor> parts = step_.measure({adam_.delta_AX, initial_norm_AP_, factors()});
    const bool watches = parts.size() > static_cast<size_t>(StepPart::kMissed);
    if (update_norm_A_.defined()) parts.push_back(update_norm_A_.to(parts.front().device()));
    const torch::NoGradGuard no_grad;
    const std::vector<double> read = to_doubles(torch::stack(parts));
    const size_t n = batch_.resident().size();
    const auto part = [&](size_t i, size_t a) { return read[i * n + a]; };
    const auto loss = [&](StepPart which, size_t a) { return part(static_cast<size_t>(which), a); };
    if (update_norm_A_.defined())
      for (size_t a = 0; a < n; ++a) check_update(request_of(a), part(parts.size() - 1, a));
    for (size_t a = 0; a < n; ++a)
      if (is_done_[request_of(a)] == 0)
        note(request_of(a),
             {loss(StepPart::kTotal, a), loss(StepPart::kNll, a), loss(StepPart::kKl, a),
              loss(StepPart::kWeightDecay, a)},
             watches ? loss(StepPart::kMissed, a) : 1.0);
  }

  /// `norm`: that of a request's change in the last step.
  void check_update(size_t request, double norm) const {
    if (std::isfinite(norm) || is_done_[request] != 0) return;
    throw NumericError(cat("request ", requests_[request]->id, ": the value's change has the norm ", norm,
                           " in value optimisation, at editor.values.lr: ", options_.lr, ". Lower it"));
  }

  void note(size_t request, const ValueLoss& loss, double missed_tokens) {
    if (!std::isfinite(loss.total)) throw bad_loss(request, loss.total);
    result_.losses[request].push_back(loss);
    predicted_steps_[request] = missed_tokens == 0 ? predicted_steps_[request] + 1 : 0;
    const std::vector<double> means = mean_losses(result_.losses[request]);
    const bool is_found = is_low(means) || stops_predicted(request, loss);
    is_done_[request] = is_found || (!options_.steps && !still_falls(means)) ? 1 : 0;
  }

  /// Describes a loss that is not finite. At the first step the model itself is the reason.
  NumericError bad_loss(size_t request, double loss) const {
    const std::string what = cat("request ", requests_[request]->id, ": the loss is ", loss, " in value optimisation");
    if (result_.losses[request].empty()) return not_finite(model_, what, wider_dtype(model_));
    return NumericError(cat(what, ". Lower editor.values.lr: ", options_.lr, ", or set run.dtype: f32"));
  }

  /// Returns, for each step except the first ones, the mean over the last steps that together had every context once.
  std::vector<double> mean_losses(const std::vector<ValueLoss>& losses) const {
    std::vector<double> means;
    for (size_t end = batch_.groups(); end <= losses.size(); ++end) {
      double sum = 0;
      for (size_t step = end - batch_.groups(); step < end; ++step) sum += losses[step].total;
      means.push_back(sum / static_cast<double>(batch_.groups()));
    }
    return means;
  }

  bool is_low(const std::vector<double>& means) const { return !means.empty() && means.back() < options_.stop_loss; }

  /// Whether the target was predicted in every context, in the last steps that together had every context once.
  bool is_predicted(size_t request) const { return predicted_steps_[request] >= batch_.groups(); }

  /// Whether a request may stop because its target is predicted.
  bool stops_predicted(size_t request, const ValueLoss& loss) const {
    if (options_.stop == ValueStop::kPredicted) return predicted_steps_[request] >= 2 * batch_.groups();
    return is_predicted(request) && loss.kl <= kPredictedKl;
  }

  /// Returns the factors of the resident requests' NLLs: [A] on the head's device; undefined: all are 1.
  const Tensor& factors() {
    if (options_.site != ValueSite::kMlpAndAttnOut) return factor_A_;
    std::vector<double> now;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      now.push_back(options_.nll_factor * (is_predicted(request_of(a)) ? kPredictedFactor : 1.0));
    const Placement& placement = model_.placement();
    if (!factor_A_.defined() || now != host_factors_)
      factor_A_ = sent_to(placement.head_device(), torch::tensor(now, torch::kDouble).to(placement.value_dtype()));
    host_factors_ = std::move(now);
    return factor_A_;
  }

  /// Returns the indices of the unfinished ones among the resident requests.
  std::vector<int64_t> unfinished() {
    std::vector<int64_t> left;
    for (size_t a = 0; a < batch_.resident().size(); ++a)
      if (is_done_[request_of(a)] == 0) left.push_back(static_cast<int64_t>(a));
    return left;
  }

  std::unique_ptr<StepGraphs> graphs_;  ///< everything else is made on its stream; may be null
  const CausalLM& model_;
  const std::vector<const PreparedRequest*>& requests_;
  const ValueOptions& options_;
  int64_t n_vectors_;
  ValueBatch batch_;
  ValueStep step_;
  AdamState adam_;
  Tensor initial_norm_AP_;
  Tensor update_norm_A_;  ///< norms of the last step's changes before they were clamped; undefined if there was no step
  Tensor is_active_A1_;   ///< undefined: all resident requests are active
  Tensor factor_A_;
  std::vector<double> host_factors_;  ///< the content of that tensor
  std::vector<char> is_done_;
  std::vector<size_t> predicted_steps_;  ///< for how many last steps every target token has been predicted
  OptimizedValues result_;
};

}  // namespace

OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options, LaunchMode launch,
                               const std::function<void(int64_t)>& note_step) {
  return BatchOptimizer(model, requests, layer, options, launch).run(note_step);
}

namespace {

Tensor gradient_of(const Tensor& total_A, const Tensor& leaf_AX) {
  return torch::autograd::grad({total_A.sum()}, {leaf_AX})[0];
}

}  // namespace

Tensor norms_of(const Tensor& rows_AX, int64_t n_vectors) { return rows_AX.unflatten(1, {n_vectors, -1}).norm(2, 2); }

ValueStep::ValueStep(ValueBatch& batch, const ValueOptions& options, ValueWatch watch, StepGraphs* graphs)
    : batch_(batch), options_(options), watch_(watch), graphs_(graphs), groups_(batch.groups()) {}

std::vector<Tensor> ValueStep::losses(size_t group, const StepInputs& inputs) const {
  const BatchLosses losses = batch_.losses(group, inputs.delta_AX, watch_);
  const Tensor nll_A = inputs.factor_A.defined() ? losses.nll_A * inputs.factor_A : losses.nll_A;
  Tensor kl_A = options_.kl * losses.kl_A;
  if (losses.kept_A.defined()) kl_A = kl_A + options_.kept_weight * losses.kept_A;
  const Tensor decay_A =
      (options_.weight_decay * norms_of(inputs.delta_AX, vectors_of(options_.site)) / inputs.initial_norm_AP.square())
          .sum(1)
          .to(nll_A.device());
  std::vector<Tensor> parts{nll_A + kl_A + decay_A, nll_A, kl_A, decay_A};
  if (watch_ == ValueWatch::kMissedTokens) parts.push_back(losses.missed_A);
  return parts;
}

std::vector<Tensor> ValueStep::measure(const StepInputs& inputs) {
  const size_t group = next_;
  next_ = (next_ + 1) % groups_.size();
  leaf_AX_ = total_A_ = gradient_AX_ = Tensor();
  if (graphs_ != nullptr && groups_[group].has_run) {
    const std::vector<Tensor>& results = replay(group, inputs);
    gradient_AX_ = results.front();
    return {results.begin() + 1, results.end()};
  }
  groups_[group].has_run = true;
  leaf_AX_ = inputs.delta_AX.detach().requires_grad_(true);
  std::vector<Tensor> parts = losses(group, {leaf_AX_, inputs.initial_norm_AP, inputs.factor_A});
  total_A_ = parts.front();
  return parts;
}

Tensor ValueStep::gradient() {
  if (!gradient_AX_.defined()) gradient_AX_ = gradient_of(total_A_, leaf_AX_);
  return gradient_AX_;
}

const std::vector<Tensor>& ValueStep::replay(size_t group, const StepInputs& inputs) {
  set_static_inputs(inputs);
  std::unique_ptr<StepGraph>& graph = groups_[group].graph;
  if (graph == nullptr)
    graph = graphs_->capture([this, group] {
      const std::vector<Tensor> parts = losses(group, static_);
      std::vector<Tensor> results{gradient_of(parts.front(), static_.delta_AX)};
      for (const Tensor& part : parts) results.push_back(part.detach());
      return results;
    });
  graph->replay();
  return graph->outputs();
}

void ValueStep::set_static_inputs(const StepInputs& inputs) {
  const torch::NoGradGuard no_grad;
  if (!static_.delta_AX.defined()) {
    static_ = {inputs.delta_AX.detach().clone().requires_grad_(true), inputs.initial_norm_AP,
               inputs.factor_A.defined() ? inputs.factor_A.clone() : Tensor()};
    seen_factor_A_ = inputs.factor_A;
    return;
  }
  static_.delta_AX.copy_(inputs.delta_AX);
  if (inputs.factor_A.defined() && !inputs.factor_A.is_same(seen_factor_A_)) {
    static_.factor_A.copy_(inputs.factor_A);
    seen_factor_A_ = inputs.factor_A;
  }
}

void ValueStep::forget_shapes() {
  groups_ = std::vector<GroupState>(batch_.groups());
  static_ = {};
  seen_factor_A_ = leaf_AX_ = total_A_ = gradient_AX_ = Tensor();
}

Tensor adam_change(Tensor& first_moment, Tensor& second_moment, const Tensor& gradient, AdamStep step) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  first_moment.mul_(kBeta1).add_((1 - kBeta1) * gradient);
  second_moment.mul_(kBeta2).add_((1 - kBeta2) * gradient.square());
  const double n = static_cast<double>(step.number);
  const Tensor unbiased = first_moment / (1 - std::pow(kBeta1, n));
  const Tensor scale = (second_moment / (1 - std::pow(kBeta2, n))).sqrt_().add_(kEps);
  return unbiased.mul_(step.lr).div_(scale);
}

}  // namespace lancet
