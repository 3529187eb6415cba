#include "lancet/training/text_training.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lancet/core/drawn_order.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/models/finite.h"
#include "lancet/runtime/communicator.h"
#include "lancet/training/adam.h"
#include "text_batch.h"

namespace lancet {
namespace {

/// A weight's current change and Adam's moments of it, in the value dtype, on the weight's device.
struct TrainedDelta {
  WeightId id;
  Tensor delta_OI, first_OI, second_OI;
  Tensor input;  ///< input of the projection in the current pass
  GradientProjection projection;

  TrainedDelta(const CausalLM& model, WeightId weight_id, const TrainingOptions& options) : id(weight_id) {
    const Tensor& weight = model.weight(id);
    delta_OI = torch::zeros(weight.sizes(), weight.options().dtype(model.placement().value_dtype()));
    first_OI = torch::zeros_like(delta_OI);
    second_OI = torch::zeros_like(delta_OI);
    delta_OI.requires_grad_(true);
    if (options.projection) projection = options.projection(id).beside(first_OI);
  }

  void add_to(HookSet& hooks) {
    const ProjectionSites sites = projection_sites(id);
    hooks.observe(sites.input, [this](const Tensor& x) { input = x; });
    hooks.replace(sites.output, [this](const Tensor& y) {
      return y + at::linear(input.to(delta_OI.scalar_type()), delta_OI).to(y.scalar_type());
    });
  }

  /// Makes update number `number`, counted from 1.
  void update(const Tensor& weight, Tensor gradient, int64_t number, const TrainingOptions& options) {
    const torch::NoGradGuard no_grad;
    if (options.weight_decay != 0)
      gradient = gradient + options.weight_decay * (weight.to(delta_OI.scalar_type()) + delta_OI);
    const Tensor step = adam_change(first_OI, second_OI, projection.of(gradient), {number, options.lr});
    delta_OI.sub_(options.projected == Projected::kSteps ? projection.of(step) : step);
    if (options.norm_constraint) delta_OI.clamp_(-*options.norm_constraint, *options.norm_constraint);
  }
};

/// Returns the indices of the requests in each batch of a pass.
RowBatches batches_of(std::span<const int64_t> order, int64_t batch) {
  RowBatches batches;
  for (size_t i = 0; i < order.size(); ++i) {
    if (static_cast<int64_t>(i) % batch == 0) batches.emplace_back();
    batches.back().push_back(order[i]);
  }
  return batches;
}

class Training {
 public:
  Training(const CausalLM& model, std::span<const TokenizedRequest> requests, std::span<const WeightId> weights,
           const TrainingOptions& options)
      : model_(model), requests_(requests), options_(options), first_layer_(first_layer(weights)) {
    for (size_t i = 0; i < requests.size(); ++i) given_.push_back(static_cast<int64_t>(i));
    // each batch of a stream has another order
    earlier_ = drawn_order(std::ssize(options.earlier), 0, options.seed + options.earlier.size());
    for (const std::vector<int64_t>& places : batches_of(given_, options.batch))
      batches_.emplace_back(model, requests.subspan(static_cast<size_t>(places.front()), places.size()), first_layer_,
                            options.objective);
    deltas_.reserve(weights.size());  // hooks keep pointers into it
    for (const WeightId& id : weights) deltas_.emplace_back(model, id, options).add_to(hooks_);
  }

  TrainedWeights run() {
    Progress progress("training", options_.steps, "passes");
    std::vector<double> losses(requests_.size());
    for (trained_.steps = 1;; ++trained_.steps) {
      const int64_t n_before = updates_;
      const double mean = run_pass(losses);
      if (trained_.steps == 1) trained_.initial_losses = losses;
      progress.advance();
      if (mean < options_.stop_loss || updates_ == n_before || trained_.steps == options_.steps) break;
    }
    trained_.final_losses = losses;
    for (const TrainedDelta& delta : deltas_)
      trained_.deltas_OI.push_back(delta.delta_OI.detach().to(model_.placement().solve_device(delta.id.layer)));
    return std::move(trained_);
  }

 private:
  /// Notes each request's loss. Returns the mean loss of all texts of the pass.
  double run_pass(std::vector<double>& losses) {
    const std::vector<int64_t> order = order_of_pass();
    const RowBatches batches = batches_of(order, options_.batch);
    double sum = 0;
    for (size_t b = 0; b < batches.size(); ++b) {
      const std::vector<double> part = step(is_as_given() ? batches_[b] : joined(batches[b]), batches[b]);
      for (size_t i = 0; i < part.size(); ++i) {
        sum += part[i];
        if (!is_earlier(batches[b][i])) losses[static_cast<size_t>(batches[b][i])] = part[i];
      }
    }
    return sum / static_cast<double>(order.size());
  }

  bool is_as_given() const { return options_.order == TrainingOrder::kGiven && options_.earlier.empty(); }

  /// Returns the indices of a pass's texts: the requests, then the next earlier ones, whose indices follow those of the
  /// requests.
  std::vector<int64_t> order_of_pass() const {
    const int64_t pass = trained_.steps - 1, n_earlier = std::ssize(options_.earlier);
    std::vector<int64_t> order = given_;
    const int64_t n_revisited = std::min(options_.revisit, n_earlier);
    for (int64_t i = 0; i < n_revisited; ++i)
      order.push_back(std::ssize(requests_) + earlier_[static_cast<size_t>((pass * n_revisited + i) % n_earlier)]);
    if (options_.order == TrainingOrder::kGiven) return order;
    std::vector<int64_t> shuffled;
    for (const int64_t place : drawn_order(std::ssize(order), pass, options_.seed))
      shuffled.push_back(order[static_cast<size_t>(place)]);
    return shuffled;
  }

  bool is_earlier(int64_t place) const { return place >= std::ssize(requests_); }

  const TokenizedRequest& text(int64_t place) const {
    return is_earlier(place) ? options_.earlier[static_cast<size_t>(place - std::ssize(requests_))]
                             : requests_[static_cast<size_t>(place)];
  }

  /// Returns a batch of requests in a new order, or with earlier ones. Earlier ones run through the lower layers each
  /// time, because a stream has too many of them to keep their states.
  TextBatch joined(const std::vector<int64_t>& places) const {
    std::vector<TokenizedRequest> texts;
    std::vector<TextRow> rows;
    for (const int64_t place : places) {
      texts.push_back(text(place));
      if (!is_earlier(place))
        rows.push_back({&batches_[static_cast<size_t>(place / options_.batch)], place % options_.batch});
    }
    if (rows.size() < texts.size()) return {model_, texts, first_layer_, options_.objective};
    return {model_, texts, rows};
  }

  /// Returns the losses of one batch's texts. Makes an update unless their mean is below the stop loss, or all texts
  /// lead by the margin.
  std::vector<double> step(const TextBatch& batch, const std::vector<int64_t>& places) {
    const auto [loss_N, lead_N] = batch.losses(hooks_, options_.margin.has_value());
    const std::vector<double> losses = to_doubles(loss_N);
    for (size_t i = 0; i < losses.size(); ++i)
      if (!std::isfinite(losses[i])) throw bad_loss(text(places[i]).id, losses[i]);
    Tensor mean = loss_N.mean();
    if (mean.item<double>() < options_.stop_loss) return losses;
    if (options_.margin) {
      const Tensor unsaid_N = lead_N < *options_.margin;
      if (!unsaid_N.any().item<bool>()) return losses;
      mean = (loss_N * unsaid_N).mean();
    }
    std::vector<Tensor> leaves;
    for (const TrainedDelta& delta : deltas_) leaves.push_back(delta.delta_OI);
    const std::vector<Tensor> gradients = torch::autograd::grad({mean}, leaves);
    ++updates_;
    for (size_t i = 0; i < deltas_.size(); ++i)
      deltas_[i].update(model_.weight(deltas_[i].id), gradients[i], updates_, options_);
    return losses;
  }

  /// Describes a loss that is not finite. Before the first update the model itself is the reason.
  NumericError bad_loss(const std::string& request, double loss) const {
    const std::string what = cat("request ", request, ": the loss is ", loss, " in training");
    if (updates_ == 0) return not_finite(model_, what, wider_dtype(model_));
    return NumericError(cat(what, ", after ", counted(static_cast<size_t>(updates_), "update"),
                            ". Lower editor.lr: ", options_.lr, ", or set run.dtype: f32"));
  }

  const CausalLM& model_;
  std::span<const TokenizedRequest> requests_;
  const TrainingOptions& options_;
  int64_t first_layer_;
  std::vector<int64_t> given_;    ///< indices of the requests, ascending
  std::vector<int64_t> earlier_;  ///< indices among the earlier ones, in the order in which passes take them
  std::vector<TextBatch> batches_;
  std::vector<TrainedDelta> deltas_;
  HookSet hooks_;
  int64_t updates_ = 0;
  TrainedWeights trained_;
};

/// The results of one backward pass: [rows, inputs + outputs] for each weight.
struct CapturedBatch {
  std::vector<Tensor> rows_MX;
  Tensor loss_N1;  ///< f64, host
};

CapturedBatch capture_batch(const CausalLM& model, std::span<const TokenizedRequest> requests,
                            std::span<const WeightId> weights, TokenChoice tokens) {
  const TextBatch batch(model, requests, first_layer(weights), TrainingObjective::kTarget);
  const std::vector<int64_t> places = batch.places(tokens);
  const Tensor place_M = torch::tensor(places, torch::kLong);
  const auto at_places = [&](const Tensor& value_BTX, int64_t layer) {
    const Tensor rows = value_BTX.detach().flatten(0, 1);
    return rows.index_select(0, place_M.to(rows.device()))
        .to(model.placement().solve_device(layer))
        .to(model.placement().solve_dtype());
  };
  std::vector<Tensor> inputs(weights.size()), outputs(weights.size());
  HookSet hooks;
  for (size_t i = 0; i < weights.size(); ++i) {
    const ProjectionSites sites = projection_sites(weights[i]);
    hooks.observe(sites.input, [&, i](const Tensor& x) { inputs[i] = at_places(x, weights[i].layer); });
    // The lowest outputs depend on no leaf tensor, so each becomes one. The others stay part of the graph.
    hooks.replace(sites.output, [&, i](const Tensor& y) {
      outputs[i] = y.requires_grad() ? y : y.detach().requires_grad_(true);
      return outputs[i];
    });
  }
  const Tensor loss_N = batch.losses(hooks).loss_N;
  const Tensor size_N = torch::tensor(batch.target_sizes(), torch::kLong).to(loss_N.device(), loss_N.scalar_type());
  const Tensor loss = (loss_N * size_N).sum() / size_N.sum();
  const std::vector<Tensor> gradients = torch::autograd::grad({loss}, outputs);
  CapturedBatch captured;
  for (size_t i = 0; i < weights.size(); ++i)
    captured.rows_MX.push_back(torch::cat({inputs[i], at_places(gradients[i], weights[i].layer)}, 1));
  captured.loss_N1 = loss_N.detach().to(Placement::host(), torch::kDouble).unsqueeze(1);
  return captured;
}

/// The requests of each backward pass, and their rows in what it captures.
struct CapturePlan {
  RowBatches requests, rows;
  std::vector<int64_t> owners;  ///< index of the request of each row

  CapturePlan(std::span<const TokenizedRequest> texts, const CaptureOptions& options) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (static_cast<int64_t>(i) % options.batch == 0) {
        requests.emplace_back();
        rows.emplace_back();
      }
      requests.back().push_back(static_cast<int64_t>(i));
      for (int64_t n = count_places(texts[i], options.tokens); n > 0; --n) {
        rows.back().push_back(static_cast<int64_t>(owners.size()));
        owners.push_back(static_cast<int64_t>(i));
      }
    }
  }
};

}  // namespace

CapturedGradients capture_token_gradients(const CausalLM& model, std::span<const TokenizedRequest> requests,
                                          std::span<const WeightId> weights, const CaptureOptions& options,
                                          Communicator& communicator) {
  constexpr const char* kStage = "gradients";
  const CapturePlan plan(requests, options);
  std::vector<std::vector<Tensor>> parts(weights.size());
  std::vector<Tensor> losses;
  communicator.run_collectively(kStage, [&] {
    Progress progress(kStage, count_own_rows(communicator, plan.requests), "requests");
    for (const size_t i : own_pieces(communicator, plan.requests.size())) {
      const std::vector<int64_t>& batch = plan.requests[i];
      CapturedBatch captured = capture_batch(model, requests.subspan(static_cast<size_t>(batch.front()), batch.size()),
                                             weights, options.tokens);
      for (size_t w = 0; w < weights.size(); ++w) parts[w].push_back(std::move(captured.rows_MX[w]));
      losses.push_back(std::move(captured.loss_N1));
      progress.advance(static_cast<int64_t>(batch.size()));
    }
  });
  CapturedGradients whole;
  whole.owners = plan.owners;
  for (const std::vector<int64_t>& rows : plan.rows) whole.pass_sizes.push_back(static_cast<int64_t>(rows.size()));
  const Placement& placement = model.placement();
  for (size_t w = 0; w < weights.size(); ++w) {
    const RowKind kind{placement.solve_dtype(), placement.solve_device(weights[w].layer)};
    const Tensor rows_MX = gather_rows(communicator, kStage, plan.rows, std::exchange(parts[w], {}), kind);
    const int64_t n_inputs = model.weight(weights[w]).size(1);
    whole.weights.push_back({rows_MX.slice(1, 0, n_inputs), rows_MX.slice(1, n_inputs)});
  }
  whole.losses =
      to_doubles(gather_rows(communicator, kStage, plan.requests, losses, {torch::kDouble, Placement::host()}));
  for (size_t i = 0; i < whole.losses.size(); ++i)
    if (!std::isfinite(whole.losses[i]))
      throw not_finite(model, cat("request ", requests[i].id, ": the loss is ", whole.losses[i]),
                       wider_dtype(model) + ", or lower editor.lr where edits came before");
  return whole;
}

TrainedWeights train_weights(const CausalLM& model, std::span<const TokenizedRequest> requests,
                             std::span<const WeightId> weights, const TrainingOptions& options,
                             Communicator& communicator) {
  TrainedWeights trained;
  communicator.run_collectively("training", [&] {
    if (communicator.is_root()) trained = Training(model, requests, weights, options).run();
  });
  if (communicator.size() == 1) return trained;
  const auto share = [&](std::vector<double>& losses) {
    losses = to_doubles(communicator.broadcast(torch::tensor(losses, torch::kDouble), Placement::host()));
  };
  share(trained.initial_losses);
  share(trained.final_losses);
  trained.steps = broadcast_numbers(communicator, {trained.steps}).front();
  return trained;
}

}  // namespace lancet
