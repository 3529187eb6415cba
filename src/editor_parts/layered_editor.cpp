#include "lancet/editor_parts/layered_editor.h"

#include <torch/types.h>
#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "chunks.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"

namespace lancet {

/// A batch that is being edited. Its parts are requests, or chunks of requests.
struct LayeredEditor::SubBatch : LayerPasses::Batch {
  std::span<const PreparedRequest> prepared;

  std::vector<int64_t> requests_of(const std::vector<int64_t>& parts) const {
    std::vector<int64_t> requests;
    for (const int64_t part : parts) requests.push_back(prepared[static_cast<size_t>(part)].request);
    return requests;
  }

  std::vector<PreparedRequest> take(const std::vector<int64_t>& parts) const {
    std::vector<PreparedRequest> taken;
    for (const int64_t index : parts) taken.push_back(prepared[static_cast<size_t>(index)]);
    return taken;
  }
};

std::vector<WeightId> LayeredEditor::targets(const ModelConfig& config) const {
  std::vector<WeightId> ids;
  for (const int64_t layer : layers_of(options_, config)) ids.push_back({WeightKind::kDown, layer});
  return ids;
}

std::vector<int64_t> LayeredEditor::value_layers(const ModelConfig& config) const {
  const std::vector<int64_t> layers = layers_of(options_, config);
  std::vector<int64_t> with_values;
  for (const std::span<const int64_t> stage : stages_of(options_, layers))
    with_values.push_back(value_layer_of(options_, stage));
  return with_values;
}

Tensor LayeredEditor::leverages(const EditContext&, const LayerProblem&) const {
  throw std::logic_error("a method with a weight to choose says nothing of its keys' leverages");
}

EditOutcome LayeredEditor::edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                                WeightTransaction& transaction) const {
  const std::vector<PreparedRequest> prepared = context.prepare(requests, options_.target_rule);
  const KeyGroups groups = group_by_key(prepared);
  EditOutcome outcome;
  outcome.requests.resize(requests.size());
  std::vector<KeyGroups> rounds = plan_rounds(groups, options_.equal_keys);
  if (options_.order == EditOrder::kOneByOne) {
    std::vector<KeyGroups> single;
    for (const KeyGroups& round : rounds)
      for (const std::vector<int64_t>& group : round) single.push_back({group});
    rounds = std::move(single);
  }
  if (options_.equal_keys != EqualKeys::kWarn || options_.order == EditOrder::kOneByOne)
    outcome.note_shared_keys(equal_keys_effect(options_.equal_keys), shared_keys(groups));
  SubBatch sub_batch{{context, state, transaction, outcome}, prepared};
  const std::vector<int64_t> all_layers = layers_of(options_, context.config());
  const std::vector<std::span<const int64_t>> parts = stages_of(options_, all_layers);
  if ((rounds.size() > 1 || parts.size() > 1) && options_.norm_anchor.mode != NormAnchor::Mode::kOff)
    measure_anchors(sub_batch, all_layers);
  for (const KeyGroups& together : rounds) {
    int64_t changes = 0;  // number of changes of each layer
    for (const std::span<const int64_t> layers : parts) changes = edit_round(sub_batch, together, layers);
    for (int64_t change = 0; change < changes; ++change)
      for (const std::vector<int64_t>& group : together) {
        const std::vector<int64_t> columns = sub_batch.requests_of(group);
        outcome.columns.insert(outcome.columns.end(), columns.begin(), columns.end());
      }
  }
  state.edits += static_cast<int64_t>(requests.size());
  return outcome;
}

GivenSolution LayeredEditor::solve_given(const EditContext& context, const GivenSystem& given,
                                         EditorState& state) const {
  if (options_.direction_mean || options_.order == EditOrder::kOneByOne)
    throw ConfigError("the method solves for one key at a time: expected memit, pmet, emmet, alphaedit or nse");
  const torch::NoGradGuard no_grad;
  const auto here = [&](const Tensor& tensor) {
    return tensor.defined() ? context.to_solve_device(tensor, given.layer) : Tensor();
  };
  LayerProblem problem{.layer = given.layer,
                       .keys_FN = here(given.keys_FN),
                       .directions_FN = {},
                       .history_FM = here(given.history_FM),
                       .residuals_DN = here(given.residuals_DN)};
  EditOutcome outcome;
  problem.weight =
      weight_for(options_.weight, {context, state, outcome}, given.layer, [&] { return leverages(context, problem); });
  Tensor inverse_NN;
  const WeightDelta delta = context.solve(given.layer, [&] {
    LayerSolution solution = solve(context, problem);
    inverse_NN = std::move(solution.inverse_gram_NN);
    return std::move(solution.change);
  });
  const auto& change = std::get<LowRankDelta>(delta);
  const auto on_host = [](const Tensor& tensor) { return tensor.to(Placement::host(), at::kDouble).contiguous(); };
  return {{on_host(change.left_OR), on_host(change.right_RI)}, inverse_NN.defined() ? on_host(inverse_NN) : Tensor()};
}

/// Measures the norm anchors on separately found values, for methods that find the values of a batch on different
/// weights.
void LayeredEditor::measure_anchors(const SubBatch& batch, std::span<const int64_t> all) const {
  for (const std::span<const int64_t> stage : stages_of(options_, all)) {
    const int64_t layer = value_layer_of(options_, stage);
    if (has_anchor(batch.state, layer)) continue;
    const Tensor z_ND = find_values(batch, batch.prepared, layer).z_ND;
    keep_anchor(batch.state, layer, batch.context.decide_by([&] { return value_norms(z_ND); }));
  }
}

/// Runs `use` on the weights on which values are found.
void LayeredEditor::on_value_weights(const SubBatch& batch, const std::function<void()>& use) const {
  if (!options_.values_on_unedited) return use();
  batch.transaction.put_unedited();
  use();
  batch.transaction.put_exact();
}

OptimizedValues LayeredEditor::find_values(const SubBatch& sub_batch, std::span<const PreparedRequest> requests,
                                           int64_t layer) const {
  OptimizedValues values;
  const auto optimise = [&](std::span<const PreparedRequest> some) {
    return sub_batch.context.optimize_values(some, layer, options_.values);
  };
  on_value_weights(sub_batch, [&] { values = find_in_turn(requests, optimise); });
  return values;
}

/// Returns the targets by layer: one at the last layer, which all layers approach, or one for each layer.
std::map<int64_t, Tensor> LayeredEditor::targets_of(const SubBatch& sub_batch,
                                                    std::span<const PreparedRequest> requests, const Tensor& z_ND,
                                                    std::span<const int64_t> layers) const {
  std::map<int64_t, Tensor> targets{{value_layer_of(options_, layers), z_ND}};
  if (options_.targets == LayerTarget::kLast || requests.empty() || layers.size() == 1) return targets;
  const HookPoint point = value_point(sub_batch.context.config(), options_.values.site);
  on_value_weights(sub_batch, [&] {
    targets.merge(sub_batch.context.replay(requests, {point, layers.front()}, z_ND, layers.subspan(1)));
  });
  return targets;
}

/// Edits one round. Returns how many changes each of the layers got. The columns of a change are the requests of the
/// round.
int64_t LayeredEditor::edit_round(const SubBatch& sub_batch, const KeyGroups& groups,
                                  std::span<const int64_t> layers) const {
  std::vector<int64_t> members;
  for (const std::vector<int64_t>& group : groups) members.insert(members.end(), group.begin(), group.end());
  const int64_t value_layer = value_layer_of(options_, layers);
  OptimizedValues values = find_values(sub_batch, sub_batch.take(members), value_layer);
  sub_batch.outcome.note_values(sub_batch.requests_of(members), values);
  const torch::NoGradGuard no_grad;
  std::vector<std::string> left_out(members.size());
  if (options_.norm_anchor.mode != NormAnchor::Mode::kOff) {
    const Tensor norm_N = sub_batch.context.decide_by([&] { return value_norms(values.z_ND); });
    keep_anchor(sub_batch.state, value_layer, norm_N);
    left_out = apply_anchor(options_.norm_anchor, anchor_norm(sub_batch.state, value_layer), norm_N, values.z_ND);
  }

  KeyGroups kept;
  std::vector<int64_t> firsts;
  std::vector<Tensor> targets;
  int64_t place = 0;  // index among the members
  for (const std::vector<int64_t>& group : groups) {
    std::vector<int64_t> places;
    for (const int64_t request : sub_batch.requests_of(group)) {
      const std::string& why = left_out[static_cast<size_t>(place)];
      sub_batch.outcome.requests[static_cast<size_t>(request)].skipped = why;
      if (why.empty()) places.push_back(place);
      ++place;
    }
    if (places.empty()) continue;
    targets.push_back(values.z_ND.index_select(0, to_index(places, values.z_ND.device())).mean(0));
    firsts.push_back(members[static_cast<size_t>(places.front())]);
    kept.push_back(std::move(places));
  }
  const Tensor z_ND = kept.empty() ? values.z_ND.narrow(0, 0, 0) : torch::stack(targets);
  const LayerPasses passes(options_, sub_batch,
                           {[&](const LayerProblem& problem) { return solve(sub_batch.context, problem); },
                            [&](const LayerProblem& problem) { return leverages(sub_batch.context, problem); }});
  std::vector<int64_t> all(kept.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<PreparedRequest> requests = sub_batch.take(firsts);
  std::map<int64_t, Tensor> by_layer = targets_of(sub_batch, requests, z_ND, layers);
  std::vector<PreparedRequest> others;
  if (options_.values.chunk_tokens > 0) others = other_places(requests);
  return passes.run({requests, std::move(by_layer), std::move(kept), sub_batch.requests_of(members), std::move(all),
                     std::move(others)},
                    layers);
}

namespace {

/// Copies the results of the requests at `places` to these places of the whole.
void put(OptimizedValues& whole, const std::vector<int64_t>& places, OptimizedValues found) {
  const torch::NoGradGuard no_grad;
  const auto n = static_cast<int64_t>(whole.losses.size());
  for (const auto& [to, from] : {std::pair{&whole.z_ND, &found.z_ND}, std::pair{&whole.delta_ND, &found.delta_ND}}) {
    if (!to->defined()) *to = torch::zeros({n, from->size(1)}, from->options());
    to->index_copy_(0, to_index(places, from->device()), *from);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    whole.losses[place] = std::move(found.losses[i]);
    whole.initial_norms[place] = found.initial_norms[i];
    whole.delta_norms[place] = found.delta_norms[i];
  }
  whole.batching.batches += found.batching.batches;
  whole.batching.largest = std::max(whole.batching.largest, found.batching.largest);
  whole.batching.halvings += found.batching.halvings;
  whole.batching.resumed += found.batching.resumed;
}

/// Makes later chunks of the request at `place` hold its delta.
void hold(std::vector<PreparedRequest>& requests, size_t place, const std::vector<double>& delta_D) {
  const PreparedRequest& found = requests[place];
  for (PreparedRequest& later : requests)
    if (later.request == found.request && later.chunk > found.chunk)
      later.held.push_back({later.prompts[0].lookup - found.prompts[0].lookup, delta_D});
}

}  // namespace

OptimizedValues find_in_turn(std::span<const PreparedRequest> requests, const FindValues& find) {
  if (std::ranges::all_of(requests, [](const PreparedRequest& each) { return each.chunk == 0; })) return find(requests);
  std::vector<PreparedRequest> all(requests.begin(), requests.end());
  OptimizedValues whole;
  whole.losses.resize(all.size());
  whole.initial_norms.resize(all.size());
  whole.delta_norms.resize(all.size());
  for (int64_t chunk = 0;; ++chunk) {
    std::vector<int64_t> places;
    std::vector<PreparedRequest> some;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].chunk != chunk) continue;
      places.push_back(static_cast<int64_t>(i));
      some.push_back(all[i]);
    }
    if (places.empty()) return whole;
    OptimizedValues found = find(some);
    for (size_t i = 0; i < places.size(); ++i)
      hold(all, static_cast<size_t>(places[i]), to_doubles(found.delta_ND[static_cast<int64_t>(i)]));
    put(whole, places, std::move(found));
  }
}

std::vector<PreparedRequest> other_places(std::span<const PreparedRequest> chunks) {
  std::vector<PreparedRequest> others;
  std::set<int64_t> edited;
  for (size_t i = 0; i < chunks.size(); ++i) {
    edited.insert(chunks[i].prompts[0].lookup);
    if (i + 1 < chunks.size() && chunks[i + 1].request == chunks[i].request) continue;
    std::vector<TokenId> text = chunks[i].rows[0].ids;
    text.push_back(chunks[i].target.back());
    for (int64_t place = 0; place < std::ssize(text); ++place) {
      if (edited.contains(place)) continue;
      PreparedRequest& other = others.emplace_back();
      other.id = chunks[i].id;
      other.request = chunks[i].request;
      other.prompts.push_back({{text.begin(), text.begin() + place + 1}, place});
    }
    edited.clear();
  }
  return others;
}

}  // namespace lancet
