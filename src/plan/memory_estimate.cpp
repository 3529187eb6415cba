#include "lancet/plan/memory_estimate.h"

#include <torch/types.h>
#include <algorithm>

#include "kept_room.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/batching.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/gradient_moments.h"
#include "lancet/statistics/self_corpus.h"
#include "lancet/training/activations.h"

namespace lancet {
namespace {

int64_t element_bytes(const Workload& work) { return static_cast<int64_t>(c10::elementSize(work.dtype)); }

int64_t count_in(const std::vector<int64_t>& layers, const Stage& stage) {
  return std::count_if(layers.begin(), layers.end(),
                       [&](int64_t layer) { return layer >= stage.begin && layer < stage.end; });
}

/// Counts those of `layers` whose second moments, solves and exact weights are on the stage's device.
int64_t count_solved(const std::vector<int64_t>& layers, const Workload& work, const Stage& stage) {
  if (work.solve_on != SolveOn::kHost) return count_in(layers, stage);
  return stage.device == Placement::host() ? static_cast<int64_t>(layers.size()) : 0;
}

/// Returns the bytes of a pass, with the memory that products need.
int64_t pass_bytes(const ModelConfig& config, const Stage& stage, const PassShape& pass) {
  return layer_pass_bytes(config, pass) + layer_product_bytes(config, stage, pass.dtype, pass.tokens);
}

int64_t logits_bytes(const ModelConfig& config, const Workload& work, const Stage& stage, int64_t rows) {
  return head_bytes(config, work.dtype, rows) + head_product_bytes(config, stage, work.dtype, rows);
}

int64_t forward_bytes(const ModelConfig& config, const Workload& work, const Stage& stage, int64_t tokens,
                      int64_t row_tokens) {
  const int64_t scores = holds_scores(config, stage.device, work.dtype) ? row_tokens : 0;
  return pass_bytes(config, stage, {work.dtype, tokens, scores});
}

bool has_head(const ModelConfig& config, const Stage& stage) { return stage.end == config.n_layers; }

/// Returns the bytes for rows of `row_tokens` tokens in total, with the keys and values of all tokens, and the logits
/// of every row.
int64_t generate_bytes(const ModelConfig& config, const Workload& work, const Stage& stage,
                       const GenerationSize& size) {
  const int64_t caches = std::max(key_value_bytes(config, work.dtype, size.rows * size.row_tokens),
                                  3 * size.rows * mixer_state_bytes(config, work.dtype));  // before, after, and moved
  // prompts are padded to the same length and run through a mixer together
  const int64_t tokens = size.rows * size.prompt_tokens;
  const int64_t mixer = mixer_bytes(config, work.dtype, tokens, size.prompt_tokens).working +
                        3 * tokens * config.d_model * element_bytes(work);
  // when rows take the places of others, at most half of one layer's keys are copied
  int64_t bytes = stage.layers() * caches + caches / 4 +
                  std::max(forward_bytes(config, work, stage, tokens, size.prompt_tokens), mixer);
  if (has_head(config, stage))
    bytes += logits_bytes(config, work, stage, size.rows) + sampling_bytes(size.sampling, config.vocab_size, size.rows);
  return bytes;
}

int64_t evaluate_bytes(const ModelConfig& config, const Workload& work, const Stage& stage, int64_t under_way) {
  const ScoringSize& size = work.evaluation.scoring;
  const int64_t hidden = size.pack_tokens * config.d_model * element_bytes(work);
  // with the output of the last stage, and the hidden states that wait for this stage
  int64_t bytes =
      2 * hidden +
      pass_bytes(config, stage,
                 {.dtype = work.dtype,
                  .tokens = size.pack_tokens,
                  .score_tokens = packed_score_tokens(config, stage.device, work.dtype, size.document_tokens),
                  .places = size.pack_places,
                  .run_places = size.run_places});
  if (has_head(config, stage)) {
    const int64_t rows = std::min(size.read_places, rows_per_head_call(config, work.dtype));
    bytes = std::max(bytes, 2 * hidden + logits_bytes(config, work, stage, rows));
  }
  GenerationSize together = work.evaluation.generation;
  if (together.rows > 0) {
    const int64_t most = std::max(under_way, kForwardTokens / std::max<int64_t>(1, together.row_tokens));
    together.rows = std::min(together.rows, most);
    bytes = std::max(bytes, generate_bytes(config, work, stage, together));
  }
  if (work.samples_text) {
    const int64_t rows = sampling_rows(config, work.dtype, work.statistics_tokens, work.document_tokens);
    const GenerationSize sampled{sampled_together(rows, work.solve_on), work.document_tokens, 1, {.top_k = 0}};
    bytes = std::max(bytes, generate_bytes(config, work, stage, sampled));
  }
  const int64_t kept =
      work.kept_tokens * config.d_model * element_bytes(work) + key_value_bytes(config, work.dtype, work.kept_tokens);
  return bytes + stage.layers() * kept;
}

/// Estimates the memory for moments of gradients. It is either their sums and a chunk's pass with what its backward
/// pass reads, or the eigenvectors of one layer's keys, the moments, and the solver's copies.
int64_t gradients_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  const int64_t d = config.d_model, first = work.statistics_layers.front();
  const int64_t sums = count_solved(work.statistics_layers, work, stage);
  const int64_t spectrum = sums > 0 ? 4 * 8 * config.largest_keys().moments() : 0;
  if (work.statistics_tokens == 0 || stage.layers() == 0) return spectrum;
  const int64_t chunk = gradient_chunk_tokens(config, work.dtype, first);
  const int64_t tokens = std::min(work.statistics_tokens, std::max(chunk, work.document_tokens));
  const int64_t layers = std::max<int64_t>(0, stage.end - std::max(stage.begin, first));
  const int64_t kept = layers * tokens * backward_token_bytes(config, work.dtype);
  const int64_t pass = forward_bytes(config, work, stage, tokens, std::min(tokens, work.document_tokens));
  const int64_t rows = has_head(config, stage) ? rows_per_head_call(config, work.dtype) : 0;
  return std::max(spectrum, sums * 8 * d * d + kept + std::max(pass, 2 * logits_bytes(config, work, stage, rows)));
}

int64_t statistics_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  if (work.statistics_layers.empty()) return 0;
  const KeyShape keys = config.largest_keys();
  const int64_t matrix = 8 * keys.moments();
  const int64_t layers = count_in(work.statistics_layers, stage);
  const int64_t sums = count_solved(work.statistics_layers, work, stage);
  const int64_t factor = sums > 0 ? matrix : 0;
  if (work.statistics_tokens == 0) return factor;
  const int64_t chunk = work.statistics_chunk > 0 ? work.statistics_chunk : statistics_chunk_tokens(config, work.dtype);
  const int64_t tokens = std::min(work.statistics_tokens, std::max(chunk, work.document_tokens));
  const GramScratch products = gram_scratch_bytes(keys.width, tokens, work.dtype);
  const int64_t held = sums * matrix + (sums > layers ? products.panel : 0);  // one sum comes from another device
  if (stage.layers() == 0 || stage.begin > work.statistics_layers.back()) return std::max(factor, held);
  const int64_t scores = packed_score_tokens(config, stage.device, work.dtype, work.document_tokens);
  const int64_t pass = pass_bytes(config, stage, {work.dtype, tokens, scores});
  if (layers == 0) return held + pass;
  const int64_t at_key = tokens * element_bytes(work) * 3 * (keys.size() + config.d_model);
  return held + std::max(pass, at_key + products.factors + products.panel);
}

/// Estimates the memory of quant/pack.h for one edited weight at a time: the weight's numbers, H, and the moments from
/// which H is made.
int64_t packing_again_bytes(const ModelConfig& config, const Workload& work) {
  if (work.packing == Packing::kNone) return 0;
  const KeyShape shape = config.largest_keys();
  const int64_t of_importance = work.packing == Packing::kPlain ? 0 : (16 + 2 * 8) * shape.moments();
  return 30 * config.d_model * shape.size() + of_importance;
}

/// Estimates the memory for one layer at a time in full precision: the sums of its matrices' inputs, and either a
/// chunk's pass, or one matrix that is packed (quant/pack.h: 30 bytes for each number of the matrix, 16 for each of H,
/// and another 8 for H itself).
int64_t packing_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  if (!work.packs_layers) return 0;
  const auto square = [](int64_t size) { return size * size; };
  int64_t most = 0;
  const int64_t chunk = statistics_chunk_tokens(config, work.dtype);
  const int64_t tokens = std::min(work.statistics_tokens, std::max(chunk, work.document_tokens));
  const int64_t scores = packed_score_tokens(config, stage.device, work.dtype, work.document_tokens);
  for (int64_t layer = stage.begin; layer < stage.end; ++layer) {
    const KeyShape keys = config.key_shape(layer);
    const int64_t heads = heads_input_size(config, layer);
    const int64_t beside =
        config.has_attention(layer) && config.has_recurrence(layer) ? config.recurrence.value_size() : 0;
    const int64_t vectors = square(config.latent.query_rank) + square(config.latent.rank);
    const int64_t shared = config.has_shared_mlp(layer) ? square(config.d_model) + square(config.experts.shared) : 0;
    const int64_t sums = 8 * (square(config.d_model) * (1 + keys.experts) + square(heads) + square(beside) + vectors +
                              shared + keys.moments());
    int64_t packing = 0;
    for (const WeightSpec& spec : layer_table(config, layer)) {
      if (spec.shape.size() != 2) continue;
      const int64_t numbers = c10::multiply_integers(spec.stored.shape);
      packing = std::max(packing, 30 * numbers + 24 * square(spec.shape[1]));
    }
    const int64_t inputs = tokens * (element_bytes(work) + 8) *
                           (keys.size() + 2 * config.d_model + heads + beside + config.latent.query_rank +
                            config.latent.rank + config.experts.shared);
    const int64_t pass = pass_bytes(config, stage, {work.dtype, tokens, scores});
    most = std::max(most, sums + std::max(packing, inputs + pass));
  }
  return most;
}

/// Estimates a stage's part of a solve: the passes that read its layers' keys, and the results if it solves.
int64_t solve_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  if (work.edited_layers.empty()) return 0;
  const bool solves = count_solved(work.edited_layers, work, stage) > 0;
  const bool gives_keys = count_in(work.edited_layers, stage) > 0;
  const KeyShape shape = config.largest_keys();
  const int64_t d = config.d_model, f = shape.size(), n = work.together(), rows = n * work.values.contexts;
  const int64_t m = n + work.history_keys;
  const int64_t element = element_bytes(work);
  const int64_t rounding = std::max(4 * precise_bytes(work.dtype) * d * f, packing_again_bytes(config, work));
  if (work.backward && !work.optimizes_values) return solves ? std::max(18 * d * f, rounding) : 0;
  int64_t kept = 0, key_pass = 0, keys = 0;
  const int64_t distinct = work.values.distinct_prefix_tokens;
  const int64_t key_tokens = distinct > 0 ? std::min(n * distinct, work.values.all_distinct_prefix_tokens) + rows
                                          : rows * (work.values.prefix_tokens + 1);
  if (stage.layers() > 0 && stage.begin <= work.edited_layers.back())
    key_pass = forward_bytes(config, work, stage, std::min(key_tokens, kForwardTokens), work.values.prefix_tokens + 1);
  if (gives_keys) {
    kept = std::min(key_tokens, kKeptTokens) * d * element;
    keys = f * rows * 2 * element;
  }
  if (!solves) return kept + key_pass + keys;
  keys += f * (rows * std::max<int64_t>(element, 8) + 8 * 2 * n);
  const int64_t factor = work.statistics_layers.empty() ? 0 : 8 * shape.moments() * (1 + work.solve_matrices);
  const int64_t systems = m <= f ? 8 * (5 * m * f + 4 * m * m) : 8 * (5 * m * f + 2 * f * f);
  const int64_t change = 18 * d * f + 8 * 2 * n * f;
  return kept + 8 * m * f + std::max({key_pass + keys, factor + std::max(systems, change), rounding});
}

/// Estimates the additional memory of methods that train: the current changes, or what is captured of tokens.
int64_t trained_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  const int64_t d = config.d_model, f = config.largest_keys().size(), tokens = work.together() * work.values.row_tokens;
  const int64_t weights = count_in(work.edited_layers, stage), solved = count_solved(work.edited_layers, work, stage);
  if (work.backward->trains_dense) {
    // Each change has its moments and its gradient, and the weight; the update copies one of them. If the solve device
    // is another one, the changes go there.
    const int64_t arrived = std::max<int64_t>(0, solved - weights);
    // The bases of each weight, and the products that they allow; and, when they are made, the spectra, one of the
    // moments with further tokens, and all products of eigenvalues in order.
    int64_t projections = 0;
    if (work.backward->projects) {
      const int64_t moments = config.largest_keys().moments();
      projections = weights * (precise_bytes(work.dtype) * (d * d + moments) + d * f);
      if (solved > 0) projections += 8 * (4 * moments + 2 * d * d + 4 * d * f);
    }
    return projections + ((weights > 0 ? 4 * weights + 3 : 0) + arrived) * precise_bytes(work.dtype) * d * f;
  }
  // Inputs and gradients in f64: of each weight as gathered, of one weight also normalised, and its system.
  const int64_t whitening = work.backward->whitens ? 8 * 8 * d * d : 0;
  if (solved > 0) return whitening + 8 * tokens * ((solved + 3) * (d + f) + 2 * tokens);
  const int64_t together = std::min(work.backward->batch, work.together()) * work.values.row_tokens;
  return weights > 0 ? together * (d + f) * element_bytes(work) : 0;
}

int64_t training_bytes(const ModelConfig& config, const Workload& work, const Stage& stage) {
  if (!work.backward) return 0;
  if (stage.layers() == 0) return trained_bytes(config, work, stage);
  // A pass keeps as much as one of value optimisation in which every token is after the lookup token.
  const int64_t row_tokens = work.values.row_tokens, tokens = work.together() * row_tokens;
  const ValueShape shape{
      .row_tokens = row_tokens, .suffix_tokens = row_tokens, .target_tokens = work.values.target_tokens};
  const ValueWork pass{config, work.dtype, work.edited_layers.front() - 1, shape};
  int64_t bytes = value_bytes(pass, stage, std::min(work.backward->batch, work.together())).activations;
  if (stage.begin <= work.edited_layers.front()) bytes += tokens * config.d_model * element_bytes(work);
  return bytes + trained_bytes(config, work, stage);
}

}  // namespace

int64_t StageEstimate::total() const {
  const int64_t work = std::max({evaluate, value_activations + value_prefix, training, statistics, solve});
  return weights + std::max(loading, edited + unpacked + kept + work);
}

SolveMatrices solve_matrices(const ModelConfig& config, const Workload& work, const Stage& stage) {
  if (work.edited_layers.empty()) return {};
  return {count_solved(work.statistics_layers, work, stage), 8 * config.largest_keys().moments()};
}

int64_t matrices_with_room(const StageEstimate& estimate, SolveMatrices wanted) {
  if (wanted.count == 0) return 0;
  // value_step_tokens() leaves a tenth of the memory free
  const int64_t values = (estimate.value_activations + estimate.value_prefix) / 9 * 10 + 100;
  const int64_t work = std::max({estimate.evaluate, values, estimate.training, estimate.statistics, estimate.solve});
  const int64_t left = estimate.budget - estimate.weights - estimate.edited - estimate.unpacked - work;
  return std::clamp<int64_t>(left / wanted.bytes, 0, wanted.count);
}

StageEstimate estimate_stage(const ModelConfig& config, const Workload& work, const Stage& stage, Batching batching) {
  StageEstimate estimate{.stage = stage};
  const int64_t edited = count_solved(work.edited_layers, work, stage), d_key = config.largest_keys().size();
  // The exact weight, and either its new version or, if the solve device is another one, the unedited weight.
  estimate.edited = edited * config.d_model * d_key * (precise_bytes(work.dtype) + element_bytes(work)) +
                    edited * 8 * work.requests * work.changes * (config.d_model + d_key);
  // The host has the editor's state, and the edited weights in their stored type if the model runs in another type.
  if (stage.device == Placement::host()) {
    estimate.edited += edited * 8 * work.history_keys * d_key;
    if (to_scalar_type(config.dtype) != work.dtype)
      estimate.edited += edited * config.d_model * d_key * bytes_per_element(config.dtype);
  }
  if (stage.device == Placement::host())
    estimate.edited += work.evaluation.kept_states * config.d_model * element_bytes(work);
  estimate.training = training_bytes(config, work, stage);
  estimate.statistics = statistics_bytes(config, work, stage) + packing_bytes(config, work, stage);
  if (work.takes_gradients) estimate.statistics = std::max(estimate.statistics, gradients_bytes(config, work, stage));
  estimate.solve = solve_bytes(config, work, stage);
  if (stage.layers() == 0) return estimate;
  const LayerRange layers{stage.begin, stage.end};
  estimate.weights = weight_bytes(config, layers, work.dtype, work.quantise_rule);
  const UnpackingBytes quantised = unpacking_bytes(config, layers, work.dtype, work.quantise_rule, stage.device);
  estimate.loading = quantised.loading;
  // each of the running batches may be at a product
  estimate.unpacked =
      quantised.unpacked * std::clamp<int64_t>(batching.under_way, 1, std::max<int64_t>(1, work.requests));
  estimate.evaluate = evaluate_bytes(config, work, stage, batching.under_way);
  if (work.optimizes_values) {
    const ValueWork values{config, work.dtype, work.value_layer(), work.values};
    const ValueBytes bytes = value_bytes(values, stage, batching.value_requests);
    const int64_t batches = std::min(batching.under_way, std::max<int64_t>(1, work.together()));
    estimate.value_activations = batches * bytes.activations;
    estimate.value_prefix = batches * bytes.prefix;
  }
  return estimate;
}

double estimate_time(const ModelConfig& config, const Workload& work, LayerRange layers) {
  const auto times = [](auto... counts) { return (static_cast<double>(counts) * ...); };
  const double row_tokens = times(work.requests, work.values.contexts, work.values.row_tokens);
  const double prefix_tokens = times(work.requests, work.values.contexts, work.values.prefix_tokens);
  const double step_tokens = times(work.value_steps, work.requests, work.values.step_tokens());
  const double labels = times(work.value_steps, work.requests, work.values.contexts, work.values.target_tokens + 1);
  const int64_t last_edited = work.edited_layers.empty() ? -1 : work.edited_layers.back();
  const int64_t last_statistics = work.statistics_layers.empty() ? -1 : work.statistics_layers.back();
  const double between = times(work.measured_between) / std::max(1.0, times(work.requests));
  const double evaluations = work.edited_layers.empty() ? 1 : 2 + between;
  double tokens = 0;  // tokens through one layer
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    tokens += evaluations * static_cast<double>(work.evaluation.scoring.tokens);
    if (layer <= last_statistics) tokens += static_cast<double>(work.statistics_tokens);
    if (!work.optimizes_values) continue;
    // Backward passes give no gradients to weights, so they cost as much as forward passes. For the keys, the layers
    // below the edited ones are run once, and each edited layer twice: before and after its change.
    if (layer <= last_edited)
      tokens += row_tokens + (layer < work.edited_layers.front() ? 1 : 2) * prefix_tokens;
    else
      tokens += prefix_tokens + 2 * step_tokens;
  }
  const double layer_size =
      times(config.d_model, 2 * query_size(config) + 2 * config.n_kv_heads * config.head_dim +
                                mlp_matrices(config) * (config.active_ffn() + config.experts.shared));
  double time = tokens * layer_size;
  if (layers.end == config.n_layers)
    time += (evaluations * static_cast<double>(work.evaluation.scoring.read_places) + 2 * labels) *
            times(config.vocab_size, config.d_model);
  return time;
}

void plan_kept(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
               const std::vector<StageEstimate>& fullest, JobPlan& plan) {
  if (!plan.fits()) return;
  int64_t left_out = 0;
  const auto keep_on = [&](StageEstimate& part, const StageEstimate& full) {
    const SolveMatrices wanted = solve_matrices(config, work, part.stage);
    const int64_t count = matrices_with_room(full, wanted);
    part.kept = count * wanted.bytes;
    if (part.stage.device != Placement::host()) left_out += wanted.count - count;
  };
  for (size_t i = 0; i < plan.stages.size(); ++i) keep_on(plan.stages[i], fullest[i]);
  if (plan.host) keep_on(*plan.host, *plan.host);
  if (left_out == 0) return;
  const SolveMatrices locked{left_out, KeptMatrices::locked_bytes(8 * config.largest_keys().moments())};
  const auto staged = std::ranges::find(plan.stages, Placement::host(), [](const auto& s) { return s.stage.device; });
  if (staged != plan.stages.end()) {
    StageEstimate beside = fullest[static_cast<size_t>(staged - plan.stages.begin())];
    beside.budget -= staged->kept;
    staged->kept += matrices_with_room(beside, locked) * locked.bytes;
  } else if (choice.host_bytes < DeviceBudget::kUnknown) {
    const int64_t count = std::min(left_out, choice.host_bytes / 2 / locked.bytes);
    if (count == 0) return;
    plan.host = StageEstimate{.stage = {Placement::host(), 0, 0}};
    plan.host->kept = count * locked.bytes;
    plan.host->budget = choice.host_bytes;
  }
}

std::vector<std::pair<at::Device, int64_t>> room_for_work(const std::vector<StageEstimate>& stages) {
  std::vector<std::pair<at::Device, int64_t>> room;
  for (const StageEstimate& s : stages) {
    const int64_t bytes = std::max<int64_t>(0, s.budget - s.weights - s.edited - s.unpacked - s.kept);
    const auto known = std::ranges::find(room, s.stage.device, [](const auto& entry) { return entry.first; });
    if (known == room.end())
      room.emplace_back(s.stage.device, bytes);
    else  // the device of another rank with the same name
      known->second = std::min(known->second, bytes);
  }
  return room;
}

KeptMatrices::Room JobPlan::kept_room() const {
  KeptMatrices::Room room;
  for (const StageEstimate& part : parts())
    if (part.stage.is_here()) room.emplace_back(part.stage.device, part.kept);
  return room;
}

}  // namespace lancet
