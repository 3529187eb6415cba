#include "lancet/editor_parts/layer_passes.h"

#include <torch/types.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "text_budget.h"

namespace lancet {
namespace {

/// Bounds as multiples of the first batch's median ||z* - h||. A request nearer than the lower bound has practically
/// reached its value. If a value is farther away than the upper bound, the optimisation failed.
constexpr double kResidualAbove = 0.05, kResidualBelow = 20;

std::string history_name(int64_t layer) { return cat("keys.", layer); }
std::string lost_name(int64_t layer) { return cat("lost.", layer); }

/// Returns the targets of each request of the batch: one, or one for each of its chunks.
std::map<int64_t, std::vector<int64_t>> targets_by_request(const LayerTargets& targets) {
  std::map<int64_t, std::vector<int64_t>> own;
  for (size_t i = 0; i < targets.groups.size(); ++i)
    for (const int64_t place : targets.groups[i])
      own[targets.members[static_cast<size_t>(place)]].push_back(static_cast<int64_t>(i));
  return own;
}

}  // namespace

HookPoint value_point(const ModelConfig& config, ValueSite site) {
  return site_in(config, site) == ValueSite::kBlockOut ? HookPoint::kBlockOut : HookPoint::kMlpOut;
}

double projection_scale(const ModelConfig& config, ValueSite site) {
  return value_point(config, site) == HookPoint::kBlockOut ? config.mlp_out_scale : 1;
}

LayerTargets LayerTargets::those(const std::vector<bool>& chosen) const {
  LayerTargets some;
  some.members = members;
  some.others = others;
  std::vector<int64_t> rows;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    rows.push_back(static_cast<int64_t>(i));
    some.requests.push_back(requests[i]);
    some.groups.push_back(groups[i]);
    some.places.push_back(places[i]);
  }
  for (const auto& [layer, z] : z_ND) some.z_ND.emplace(layer, z.index_select(0, to_index(rows, z.device())));
  return some;
}

int64_t LayerTargets::request_of(size_t target) const { return members[static_cast<size_t>(groups[target].front())]; }

int64_t LayerPasses::run(const LayerTargets& targets, std::span<const int64_t> layers) const {
  int64_t passes = 0;
  ResidualBounds bounds;
  RealisedShares realised(batch_.context, static_cast<int64_t>(targets.requests.size()));
  std::vector<bool> was_taken(targets.requests.size(), false);
  for (; passes < options_.passes; ++passes) {
    const std::vector<bool> chosen = choose(targets, layers.back(), bounds);
    const auto n_chosen = static_cast<size_t>(std::count(chosen.begin(), chosen.end(), true));
    if (n_chosen == 0 && passes > 0) break;
    for (size_t i = 0; i < chosen.size(); ++i) was_taken[i] = was_taken[i] || chosen[i];
    if (n_chosen == chosen.size())
      change_layers(targets, layers, realised);
    else
      change_layers(targets.those(chosen), layers, realised);
  }
  for (const auto& [member, own] : targets_by_request(targets)) {
    RequestOutcome& request = batch_.outcome.requests[static_cast<size_t>(member)];
    realised.write_to(request, own);
    if (!was_taken[static_cast<size_t>(own.front())])
      request.skipped = cat("||z* - h|| is not between editor.residual_above, ", *bounds.above,
                            ", and editor.residual_below, ", *bounds.below);
  }
  if (options_.keeps_history && !targets.requests.empty()) keep_keys(targets, layers);
  return passes;
}

/// Returns which targets a pass takes: those with a distance between `bounds`.
std::vector<bool> LayerPasses::choose(const LayerTargets& targets, int64_t last, ResidualBounds& bounds) const {
  std::vector<bool> chosen(targets.requests.size(), true);
  if (options_.residuals.take_all() || targets.requests.empty()) return chosen;
  RequestStates states = batch_.context.states_of(targets.requests);
  const Tensor left_ND = missing(states, targets, last);
  const Tensor norm_N = batch_.context.decide_by([&] { return left_ND.norm(2, 1); });
  bounds = bounds_by(norm_N, last);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double norm = norm_N[static_cast<int64_t>(i)].item<double>();
    chosen[i] = norm > *bounds.above && norm < *bounds.below;
  }
  return chosen;
}

/// Fills in the bounds that are `auto`, as multiples of the median of `norm_N` (||z* - h|| of the first batch).
ResidualBounds LayerPasses::bounds_by(const Tensor& norm_N, int64_t last) const {
  ResidualBounds bounds = options_.residuals;
  const auto times_middle = [&](double factor) {
    return [&norm_N, factor] { return factor * norm_N.median().item<double>(); };
  };
  const auto chosen = [&](const char* option, double factor) {
    return choose_once(batch_.state, batch_.outcome, option, last, times_middle(factor));
  };
  if (!bounds.above) bounds.above = chosen("residual_above", kResidualAbove);
  if (!bounds.below) bounds.below = chosen("residual_below", kResidualBelow);
  return bounds;
}

/// Applies a change of zeros with as many columns as any other change, because the order of the columns says which
/// request a column belongs to.
void LayerPasses::change_nothing(int64_t layer, int64_t n_members) const {
  const ModelConfig& config = batch_.context.config();
  const auto zeros = [&](int64_t rows, int64_t columns) {
    return batch_.context.to_solve_device(torch::zeros({rows, columns}, torch::kDouble), layer);
  };
  batch_.transaction.apply({WeightKind::kDown, layer}, LowRankDelta{zeros(config.d_model, n_members),
                                                                    zeros(n_members, config.key_shape(layer).size())});
}

void LayerPasses::change_layers(const LayerTargets& targets, std::span<const int64_t> layers,
                                RealisedShares& realised) const {
  const EditContext& context = batch_.context;
  const auto n_members = static_cast<int64_t>(targets.members.size());
  if (targets.requests.empty()) {
    for (const int64_t layer : layers) change_nothing(layer, n_members);
    return;
  }
  Progress progress("weights", static_cast<int64_t>(layers.size()), "layers");
  RequestStates states = context.states_of(targets.requests);
  std::optional<RequestStates> others;
  if (!targets.others.empty()) others.emplace(context.states_of(targets.others));
  if (options_.targets == LayerTarget::kReplay) {
    states.keep_from(layers.front());
    realised.note_missing(of_projection(missing(states, targets, layers.back())).t(), targets.places);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerProblem problem;
    problem.layer = layers[i];
    states.keep_from(layers[i]);
    problem.keys_FN = states.collect_keys(layers[i], options_.key_mean);
    if (realised.empty()) note_near_keys(targets, problem.keys_FN);
    if (options_.direction_mean) problem.directions_FN = states.collect_keys(layers[i], *options_.direction_mean);
    if (const Tensor history = columns_of(batch_.state, history_name(layers[i])); history.defined())
      problem.history_FM = context.to_solve_device(history, layers[i]);
    if (others) {
      others->keep_from(layers[i]);
      problem.history_FM = joined_columns(problem.history_FM, others->collect_keys(layers[i], ContextMean::kPlain));
    }
    problem.residuals_DN = residuals(states, targets, layers.subspan(i));
    if (i == 0 && options_.targets == LayerTarget::kLast)
      realised.note_missing(parts(layers.size()) * problem.residuals_DN, targets.places);
    problem.weight = weight_for(options_.weight, {context, batch_.state, batch_.outcome}, layers[i],
                                [&] { return method_.leverages(problem); });
    const WeightDelta applied = change_layer(problem, targets);
    realised.note({.layer = layers[i],
                   .keys_FN = problem.keys_FN,
                   .residuals_DN = problem.residuals_DN,
                   .is_last = i + 1 == layers.size(),
                   .delta = applied},
                  targets.places);
    progress.advance();
  }
}

/// Solves for a layer's change, applies it, and stores what later batches need of it. Returns the change as applied.
WeightDelta LayerPasses::change_layer(const LayerProblem& problem, const LayerTargets& targets) const {
  const EditContext& context = batch_.context;
  const auto n_members = static_cast<int64_t>(targets.members.size());
  if (options_.text_budget) {
    const TextBudget budget(*options_.text_budget, context, batch_.transaction);
    const WeightDelta applied = apply(problem.layer, context.solve(problem.layer, [&]() -> WeightDelta {
      WeightDelta delta = budget.solve(problem);
      const auto* columns = std::get_if<LowRankDelta>(&delta);
      return columns == nullptr ? std::move(delta) : by_request(*columns, targets.groups, n_members);
    }));
    append_columns(batch_.state, history_name(problem.layer), budget.solved_columns(problem));
    return applied;
  }
  Tensor inverse_gram_NN;  // on root
  const Tensor lost_OI = lost_by_filters(problem.layer);
  const WeightDelta delta = context.solve(problem.layer, [&]() -> WeightDelta {
    LayerProblem asked = problem;
    if (lost_OI.defined()) asked.residuals_DN = asked.residuals_DN + torch::matmul(lost_OI, asked.keys_FN);
    LayerSolution solution = method_.solve(asked);
    inverse_gram_NN = std::move(solution.inverse_gram_NN);
    if (!lost_OI.defined()) return by_request(solution.change, targets.groups, n_members);
    return DenseDelta{to_dense(solution.change) - lost_OI};
  });
  WeightDelta applied = apply(problem.layer, delta);
  // a system can be solved again only if no filter changed its result and no other keys were kept in place
  if (!batch_.transaction.has_filter() && targets.others.empty())
    note_system(problem, targets, std::move(inverse_gram_NN));
  if (options_.keeps_solved_keys) append_columns(batch_.state, history_name(problem.layer), problem.keys_FN);
  return applied;
}

/// Returns what filters have removed from the layer's changes so far (applied - wanted), if the next change makes up
/// for it; undefined: nothing.
Tensor LayerPasses::lost_by_filters(int64_t layer) const {
  const Tensor lost = columns_of(batch_.state, lost_name(layer));
  return lost.defined() ? batch_.context.to_solve_device(lost, layer) : lost;
}

/// Applies a change, and with error feedback stores what filters removed from it. Error feedback (OTE,
/// github.com/Wangzzzzzzzz/OTE-SE-Alignment) asks for (R K^T - E) A^-1, where E = lost (A - K K^T). This equals (R +
/// lost K) K^T A^-1 - lost: the change takes back what is lost, and gives the keys what they then lack.
WeightDelta LayerPasses::apply(int64_t layer, const WeightDelta& wanted) const {
  const WeightDelta applied = batch_.transaction.apply({WeightKind::kDown, layer}, wanted);
  if (options_.error_feedback)
    batch_.state.tensors[lost_name(layer)] =
        batch_.context.decide_by([&] { return to_dense(applied) - to_dense(wanted); });
  return applied;
}

/// Stores the system that the layer's last change was solved from.
void LayerPasses::note_system(const LayerProblem& problem, const LayerTargets& targets, Tensor inverse_gram_NN) const {
  SolvedSystem system{.id = {WeightKind::kDown, problem.layer},
                      .keys_FN = problem.keys_FN,
                      .residuals_DN = problem.residuals_DN,
                      .inverse_gram_NN = std::move(inverse_gram_NN)};
  for (const std::vector<int64_t>& group : targets.groups) {
    system.edits.emplace_back();
    for (const int64_t place : group) system.edits.back().push_back(targets.members[static_cast<size_t>(place)]);
  }
  if (const WeightTransaction::Entry* entry = batch_.transaction.find(system.id))
    system.change = std::ssize(entry->deltas) - 1;
  batch_.context.note_system(std::move(system));
}

/// Notes which requests of a batch have nearly equal keys, at the batch's first change. Keys at later changes are
/// nearly the same, or are some of these.
void LayerPasses::note_near_keys(const LayerTargets& targets, const Tensor& keys_FN) const {
  const KeyGroups near = near_keys(keys_FN);
  KeyGroups requests;
  for (const std::vector<int64_t>& group : near) {
    std::set<int64_t> of_group;
    for (const int64_t column : group) of_group.insert(targets.request_of(static_cast<size_t>(column)));
    if (of_group.size() > 1) requests.emplace_back(of_group.begin(), of_group.end());
  }
  batch_.outcome.note_shared_keys(near_keys_effect(), requests);
}

/// Stores the keys of all targets, computed with the edited weights.
void LayerPasses::keep_keys(const LayerTargets& targets, std::span<const int64_t> layers) const {
  RequestStates edited = batch_.context.states_of(targets.requests);
  for (const int64_t layer : layers) {
    edited.keep_from(layer);
    append_columns(batch_.state, history_name(layer), edited.collect_keys(layer, options_.key_mean));
  }
}

/// Returns z* - h at a layer that has targets: [N, D], on the device of that layer.
Tensor LayerPasses::missing(RequestStates& states, const LayerTargets& targets, int64_t layer) const {
  const HookPoint point = value_point(batch_.context.config(), options_.values.site);
  const Tensor now_ND = states.collect({point, layer}, options_.output_mean);
  return batch_.context.to_solve_device(targets.z_ND.at(layer), layer) - now_ND;
}

/// Returns by how much a down projection's output has to move so that the hidden state at the value's site moves by
/// `missing`.
Tensor LayerPasses::of_projection(const Tensor& missing_ND) const {
  const double scale = projection_scale(batch_.context.config(), options_.values.site);
  return scale != 1 ? missing_ND / scale : missing_ND;
}

/// Returns the number of parts that the remaining residual is divided into. The next layer takes one part.
double LayerPasses::parts(size_t layers_left) const {
  if (options_.targets == LayerTarget::kReplay) return 1;
  const auto n = static_cast<double>(layers_left);
  return options_.spread == Spread::kEven ? n : std::sqrt(n);
}

/// Returns this layer's share of the residual: [D, N], on the device of the first layer that is left.
Tensor LayerPasses::residuals(RequestStates& states, const LayerTargets& targets,
                              std::span<const int64_t> layers_left) const {
  const bool has_own = options_.targets == LayerTarget::kReplay;
  const Tensor left_ND = missing(states, targets, has_own ? layers_left.front() : layers_left.back());
  const Tensor share_ND = of_projection(left_ND) / parts(layers_left.size());
  return batch_.context.to_solve_device(share_ND, layers_left.front()).t().contiguous();
}

namespace {

/// Returns the dot product of each pair of columns.
Tensor dots(const Tensor& a_DN, const Tensor& b_DN) { return (a_DN * b_DN).sum(0); }

Tensor change_of(const Tensor& keys_FN, const WeightDelta& delta) {
  if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
    return torch::matmul(low_rank->left_OR, torch::matmul(low_rank->right_RI, keys_FN));
  return torch::matmul(std::get<DenseDelta>(delta).full_OI, keys_FN);
}

}  // namespace

void RealisedShares::note(const LayerChange& change, const std::vector<int64_t>& targets) {
  const torch::NoGradGuard no_grad;
  const Tensor sums_RN = context_.decide_by([&] {
    const Tensor given_DN = change_of(change.keys_FN, change.delta);
    const Tensor& asked_DN = change.residuals_DN;
    std::vector<Tensor> sums{dots(given_DN, asked_DN), dots(asked_DN, asked_DN)};
    if (change.is_last) {
      const Tensor first_DN = first_DT_.index_select(1, to_index(targets, first_DT_.device())).to(given_DN.device());
      sums.insert(sums.end(), {dots(first_DN - asked_DN + given_DN, first_DN), dots(first_DN, first_DN)});
    }
    return torch::stack(sums);
  });
  std::vector<Sums>& own = by_layer_.try_emplace(change.layer, static_cast<size_t>(n_targets_)).first->second;
  const std::vector<double> sums = to_doubles(sums_RN);
  const size_t n = targets.size();
  for (size_t i = 0; i < n; ++i) {
    const auto target = static_cast<size_t>(targets[i]);
    own[target].given += sums[i];
    own[target].asked += sums[n + i];
    if (change.is_last) in_all_[target] = {sums[2 * n + i], sums[3 * n + i]};
  }
}

void RealisedShares::note_missing(const Tensor& missing_DN, const std::vector<int64_t>& targets) {
  std::vector<int64_t> columns, fresh;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (has_first_[static_cast<size_t>(targets[i])]) continue;
    has_first_[static_cast<size_t>(targets[i])] = true;
    columns.push_back(static_cast<int64_t>(i));
    fresh.push_back(targets[i]);
  }
  if (fresh.empty()) return;
  if (!first_DT_.defined()) first_DT_ = torch::zeros({missing_DN.size(0), n_targets_}, missing_DN.options());
  const at::Device device = first_DT_.device();
  const Tensor fresh_DN = missing_DN.index_select(1, to_index(columns, missing_DN.device()));
  first_DT_.index_copy_(1, to_index(fresh, device), fresh_DN.to(device));
}

void RealisedShares::write_to(RequestOutcome& outcome, std::span<const int64_t> targets) const {
  const auto least = [&](const std::vector<Sums>& sums) {
    std::optional<double> share;
    for (const int64_t target : targets)
      if (const auto& [given, asked] = sums[static_cast<size_t>(target)]; asked > 0)
        share = std::min(share.value_or(given / asked), given / asked);
    return share;
  };
  for (const auto& [layer, sums] : by_layer_)
    if (const std::optional<double> share = least(sums)) outcome.realised_by_layer.push_back({layer, *share});
  if (const std::optional<double> share = least(in_all_)) outcome.realised = share;
}

Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight) {
  Tensor lower_FF = context.covariance_factor(problem.layer);
  return identity_weight > 0 ? lift_factor(lower_FF, problem.weight, identity_weight) : lower_FF;
}

}  // namespace lancet
