#include "lancet/editing/editor.h"

#include <torch/types.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editing/edit_outcome.h"
#include "lancet/editing/request_states.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/finite.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/training/activations.h"
#include "lancet/training/value_memory.h"

namespace lancet {

namespace {

/// Throws: NumericError that names the first request whose row of `value_NX` (the values at `site`) is not finite.
void check_finite(const CausalLM& model, std::span<const PreparedRequest> requests, HookSite site,
                  const Tensor& value_NX) {
  if (value_NX.isfinite().all().item<bool>()) return;
  const std::vector<double> size_N = to_doubles(value_NX.norm(2, 1));
  const auto bad = std::find_if(size_N.begin(), size_N.end(), [](double size) { return !std::isfinite(size); });
  throw not_finite(model,
                   cat("request ", requests[static_cast<size_t>(bad - size_N.begin())].id, ": ",
                       site.point == HookPoint::kMlpKey ? "the key" : "the hidden state", " at layer ", site.layer,
                       " is not finite"),
                   "Changes before it drove the model out of range: lower editor.values.lr, hold them back more "
                   "(covariance_weight, ridge), or set run.dtype: f32");
}

/// The index of dense changes in the variant WeightDelta.
constexpr int64_t kDense = 1;
static_assert(std::is_same_v<std::variant_alternative_t<kDense, WeightDelta>, DenseDelta>);

/// Sets a flag until the end of the scope.
class Solving {
 public:
  explicit Solving(bool& flag) : flag_(flag) { flag_ = true; }
  ~Solving() { flag_ = false; }
  Solving(const Solving&) = delete;
  Solving& operator=(const Solving&) = delete;

 private:
  bool& flag_;
};

}  // namespace

std::vector<PreparedRequest> EditContext::heaviest(std::span<const PreparedRequest> requests, int64_t layer,
                                                   const ValueOptions& options) const {
  check_all_are_here();
  std::vector<PreparedRequest> heaviest;
  Communicator& ranks = work_.communicator;
  const int64_t n_batches = broadcast_numbers(ranks, {pieces_at_once(model_.placement())}).front() * ranks.size();
  RowBatches batches = plan_value_batches(model_, requests, layer, options, ranks);
  for (const int64_t index : heaviest_requests(requests, options, std::move(batches), n_batches))
    heaviest.push_back(requests[static_cast<size_t>(index)]);
  return heaviest;
}

void EditContext::check_all_are_here() const {
  if (is_solving_) throw std::logic_error("an editor asks within solve() or decide_by() for what all do together");
}

OptimizedValues EditContext::optimize_values(std::span<const PreparedRequest> requests, int64_t layer,
                                             const ValueOptions& options) const {
  check_all_are_here();
  return lancet::optimize_values(model_, requests, layer, options, work_);
}

std::map<int64_t, Tensor> EditContext::replay(std::span<const PreparedRequest> requests, HookSite at,
                                              const Tensor& z_ND, std::span<const int64_t> layers) const {
  check_all_are_here();
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests) rows.push_back(&request.prompts.front());
  const Tensor found_NLD = replay_from(model_, rows, {at, z_ND, layers}, work_.communicator);
  std::map<int64_t, Tensor> by_layer;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Tensor found_ND = to_solve_device(found_NLD.select(1, static_cast<int64_t>(i)), layers[i]);
    check_finite(model_, requests, {at.point, layers[i]}, found_ND);
    by_layer.emplace(layers[i], found_ND);
  }
  return by_layer;
}

Tensor EditContext::covariance_factor(int64_t layer) const {
  check_is_solving();
  Tensor factor = algebra_.factor(layer);
  check_device(factor, model_.placement().solve_device(layer), cat("factor of layer ", layer, "'s covariance"));
  return factor;
}

NullSpace EditContext::null_space(int64_t layer) const {
  check_is_solving();
  return algebra_.null_space(layer);
}

Curvature EditContext::curvature(int64_t layer) const {
  check_is_solving();
  return algebra_.curvature(layer);
}

void EditContext::check_is_solving() const {
  if (!is_solving_)
    throw std::logic_error("an editor asks outside of solve() and decide_by() for algebra, which is not everywhere");
}

CapturedGradients EditContext::capture_token_gradients(std::span<const TokenizedRequest> requests,
                                                       std::span<const WeightId> weights,
                                                       const CaptureOptions& options) const {
  check_all_are_here();
  return lancet::capture_token_gradients(model_, requests, weights, options, work_.communicator);
}

TrainedWeights EditContext::train_weights(std::span<const TokenizedRequest> requests, std::span<const WeightId> weights,
                                          const TrainingOptions& options) const {
  check_all_are_here();
  TrainingOptions own = options;
  own.seed = work_.seed;
  if (options.projection)
    own.projection = [&](WeightId id) {
      const Solving solving(is_solving_);
      return options.projection(id);
    };
  return lancet::train_weights(model_, requests, weights, own, work_.communicator);
}

WeightDelta EditContext::solve(int64_t layer, const std::function<WeightDelta()>& make) const {
  Communicator& ranks = work_.communicator;
  WeightDelta delta;
  ranks.run_collectively("solve", [&] {
    if (!ranks.is_root()) return;
    const Solving solving(is_solving_);
    delta = make();
    if (ranks.size() > 1) delta = contiguous(delta);
  });
  if (ranks.size() == 1) return delta;
  const at::Device device = model_.placement().solve_device(layer);
  const bool is_dense = broadcast_numbers(ranks, {static_cast<int64_t>(delta.index())}).front() == kDense;
  if (is_dense) {
    const auto* own = std::get_if<DenseDelta>(&delta);
    return DenseDelta{ranks.broadcast(own != nullptr ? own->full_OI : Tensor(), device)};
  }
  const LowRankDelta own = std::get<LowRankDelta>(delta);
  Tensor left_OR = ranks.broadcast(own.left_OR, device);
  return LowRankDelta{std::move(left_OR), ranks.broadcast(own.right_RI, device)};
}

Tensor EditContext::decide_by(const std::function<Tensor()>& measure) const {
  Communicator& ranks = work_.communicator;
  Tensor numbers;
  ranks.run_collectively("values", [&] {
    if (!ranks.is_root()) return;
    const Solving solving(is_solving_);
    numbers = measure().to(Placement::host()).contiguous();
  });
  return ranks.broadcast(numbers, Placement::host());
}

void EditContext::note_system(SolvedSystem system) const {
  if (systems_ == nullptr || !work_.communicator.is_root()) return;
  for (Tensor* tensor : {&system.keys_FN, &system.residuals_DN, &system.inverse_gram_NN})
    if (tensor->defined()) *tensor = tensor->to(Placement::host(), at::kDouble).contiguous();
  systems_->push_back(std::move(system));
}

Tensor EditContext::to_solve_device(const Tensor& tensor, int64_t layer) const {
  const Placement& placement = model_.placement();
  // the wider type comes after the copy, which then moves fewer bytes
  return tensor.to(placement.solve_device(layer)).to(placement.solve_dtype());
}

GivenSolution Editor::solve_given(const EditContext&, const GivenSystem&, EditorState&) const {
  throw ConfigError("the method solves for no keys: expected memit, pmet, emmet, alphaedit or nse");
}

std::vector<int64_t> target_layers(const Editor& editor, const ModelConfig& config) {
  std::vector<int64_t> layers;
  for (const WeightId& id : editor.targets(config)) layers.push_back(id.layer);
  return layers;
}

void EditOutcome::note_values(std::span<const int64_t> places, const OptimizedValues& values) {
  batching.batches += values.batching.batches;
  batching.largest = std::max(batching.largest, values.batching.largest);
  batching.halvings += values.batching.halvings;
  batching.resumed += values.batching.resumed;
  std::set<int64_t> noted;
  for (size_t i = 0; i < places.size(); ++i) {
    RequestOutcome& request = requests[static_cast<size_t>(places[i])];
    const bool is_known = !noted.insert(places[i]).second;
    if (is_known && values.losses[i].back().total <= *request.final_loss) continue;
    request.steps = static_cast<int64_t>(values.losses[i].size());
    request.initial_loss = values.losses[i].front().total;
    request.final_loss = values.losses[i].back().total;
    request.initial_norm = values.initial_norms[i];
    request.delta_norm = values.delta_norms[i];
    request.losses.clear();
    for (const ValueLoss& loss : values.losses[i]) request.losses.push_back(static_cast<float>(loss.total));
  }
}

void EditOutcome::note_shared_keys(const std::string& effect, std::span<const std::vector<int64_t>> groups) {
  if (groups.empty()) return;
  auto known = std::find_if(shared_keys.begin(), shared_keys.end(),
                            [&](const SharedKeys& keys) { return keys.effect == effect; });
  if (known == shared_keys.end()) known = shared_keys.insert(shared_keys.end(), SharedKeys{effect, {}});
  for (const std::vector<int64_t>& group : groups)
    if (std::find(known->groups.begin(), known->groups.end(), group) == known->groups.end())
      known->groups.push_back(group);
}

namespace {

/// Returns the prompts of contexts begin..end-1, for one request after another.
std::vector<const LocatedPrompt*> rows_of(std::span<const PreparedRequest> requests, size_t begin, size_t end) {
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests)
    for (size_t c = begin; c < end; ++c) rows.push_back(&request.prompts[c]);
  return rows;
}

}  // namespace

RequestStates::RequestStates(const EditContext& context, std::span<const PreparedRequest> requests)
    : context_(context),
      requests_(requests),
      plain_(context.model_, rows_of(requests, 0, 1)),
      others_(context.model_, rows_of(requests, 1, requests.front().prompts.size())) {}

void RequestStates::keep_from(int64_t layer) {
  plain_.keep_from(layer);
  others_.keep_from(layer);
}

Tensor RequestStates::collect(HookSite site, ContextMean mean) {
  context_.check_all_are_here();
  const torch::NoGradGuard no_grad;
  const Tensor value_NX = mean_of(site, mean);
  check_finite(context_.model_, requests_, site, value_NX);
  return value_NX;
}

Tensor RequestStates::mean_of(HookSite site, ContextMean mean) {
  Communicator& ranks = context_.work_.communicator;
  const Tensor plain_NX = context_.to_solve_device(plain_.collect(site, ranks), site.layer);
  if (mean == ContextMean::kPlain || others_.empty()) return plain_NX;
  const Tensor others_NCX = context_.to_solve_device(others_.collect(site, ranks), site.layer)
                                .unflatten(0, {static_cast<int64_t>(requests_.size()), -1});
  if (mean == ContextMean::kFlat) return torch::cat({plain_NX.unsqueeze(1), others_NCX}, 1).mean(1);
  return 0.5 * plain_NX + 0.5 * others_NCX.mean(1);
}

Tensor RequestStates::collect_keys(int64_t layer, ContextMean mean) {
  return collect({HookPoint::kMlpKey, layer}, mean).t();
}

}  // namespace lancet
