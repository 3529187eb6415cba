#include "lancet/training/values.h"

#include <torch/types.h>
#include <algorithm>
#include <mutex>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/runtime/memory.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/spec/read_option.h"
#include "lancet/training/value_memory.h"
#include "value_optimizer.h"

namespace lancet {
namespace {

/// The batches of one call. Several may run at a time, each with its own requests.
class ValueRun {
 public:
  ValueRun(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer, const ValueOptions& options,
           const WorkContext& work)
      : model_(model),
        requests_(requests),
        layer_(layer),
        options_(options),
        work_(work),
        steps_(std::ssize(requests), options.most_steps()) {
    const size_t n = requests.size();
    whole_.losses.resize(n);
    whole_.initial_norms.resize(n);
    whole_.delta_norms.resize(n);
  }

  OptimizedValues run() {
    if (store() != nullptr) weights_key_ = store()->current_weights();
    const RowBatches batches = plan_value_batches(model_, requests_, layer_, options_, work_.communicator);
    const std::vector<size_t> own = own_pieces(work_.communicator, batches.size());
    std::vector<Tensor> parts(own.size());
    work_.communicator.run_collectively(kStage, [&] {
      for (size_t i = 0; i < batches.size(); ++i)
        if (!work_.communicator.is_mine(static_cast<int64_t>(i)))
          for (const int64_t index : batches[i]) steps_.end(index);
      progress_.emplace(kStage, count_own_rows(work_.communicator, batches), "requests");
      progress_->measure_by("step", static_cast<int64_t>(own.size()) * options_.most_steps());
      progress_->estimate_by([this] { return steps_.work(); });
      if (work_.launch == LaunchMode::kGraph) check_step_graphs(model_.config(), model_.placement(), layer_);
      const auto run_one = [&](int64_t i) {
        parts[static_cast<size_t>(i)] = run_batch(batches[own[static_cast<size_t>(i)]]);
      };
      const auto n = static_cast<int64_t>(own.size());
      if (work_.launch == LaunchMode::kEachOperation)
        run_independent(model_.placement(), n, run_one);
      else
        for (int64_t i = 0; i < n; ++i) run_one(i);  // all steps run on one device, and a capture needs it exclusively
      progress_->finish();
    });
    const torch::NoGradGuard no_grad;
    const Placement& placement = model_.placement();
    const std::vector<Tensor> found_ND =
        gather_rows(work_.communicator, kStage, batches, parts, {placement.value_dtype(), placement.device_of(layer_)})
            .chunk(2, 1);
    whole_.z_ND = found_ND[0].contiguous();
    whole_.delta_ND = found_ND[1].contiguous();
    if (work_.communicator.size() > 1) share_records(batches, own);
    if (whole_.batching.resumed > 0)
      log_line(cat("values  ", counted(static_cast<size_t>(whole_.batching.resumed), "request"),
                   " taken from an interrupted run"));
    return std::move(whole_);
  }

 private:
  static constexpr const char* kStage = "values";

  /// Shares everything except z: losses and norms of every request, and how the batches were run.
  void share_records(const RowBatches& batches, const std::vector<size_t>& own) {
    std::vector<Tensor> records;
    work_.communicator.run_collectively(kStage, [&] {
      for (const size_t i : own) records.push_back(to_records(batches[i]));
    });
    const Tensor all_NX =
        gather_rows(work_.communicator, kStage, batches, records, {torch::kDouble, Placement::host()});
    for (int64_t i = 0; i < all_NX.size(0); ++i) note_record(static_cast<size_t>(i), all_NX[i]);
    const ValueBatching& mine = whole_.batching;
    ValueBatching all;
    for (const std::vector<int64_t>& rank :
         gather_numbers(work_.communicator, {mine.batches, mine.largest, mine.halvings, mine.resumed})) {
      all.batches += rank.at(0);
      all.largest = std::max(all.largest, rank.at(1));
      all.halvings += rank.at(2);
      all.resumed += rank.at(3);
    }
    whole_.batching = all;
  }

  /// Returns for each request its norms, its number of losses, and the losses: [N, 3 + 4 * most steps] f64.
  Tensor to_records(const std::vector<int64_t>& indices) const {
    Tensor records_NX =
        torch::zeros({static_cast<int64_t>(indices.size()), 3 + kLossParts * options_.most_steps()}, torch::kDouble);
    for (size_t i = 0; i < indices.size(); ++i) {
      const size_t place = static_cast<size_t>(indices[i]);
      double* at = records_NX.mutable_data_ptr<double>() + static_cast<int64_t>(i) * records_NX.size(1);
      *at++ = whole_.initial_norms[place];
      *at++ = whole_.delta_norms[place];
      *at++ = static_cast<double>(whole_.losses[place].size());
      for (const ValueLoss& loss : whole_.losses[place])
        for (const double part : {loss.total, loss.nll, loss.kl, loss.weight_decay}) *at++ = part;
    }
    return records_NX;
  }

  void note_record(size_t place, const Tensor& record_X) {
    const double* at = record_X.const_data_ptr<double>();
    whole_.initial_norms[place] = at[0];
    whole_.delta_norms[place] = at[1];
    const auto n_losses = static_cast<size_t>(at[2]);
    whole_.losses[place].clear();
    for (at += 3; whole_.losses[place].size() < n_losses; at += kLossParts)
      whole_.losses[place].push_back({at[0], at[1], at[2], at[3]});
  }

  /// Returns z and z - h0 [N, 2 D] of the requests at `indices`, in that order. Stores the other results in the whole.
  Tensor run_batch(const std::vector<int64_t>& indices) {
    std::vector<const PreparedRequest*> batch;
    for (const int64_t index : indices) batch.push_back(&requests_[static_cast<size_t>(index)]);
    std::optional<OptimizedValues> values;
    if (store() != nullptr) values = store()->load(batch, setting());
    if (values) {
      values->batching.resumed = static_cast<int64_t>(batch.size());
      progress_->expect_pieces(-options_.most_steps());
      progress_->skip(values->batching.resumed);
      for (const int64_t index : indices) steps_.end(index);
    } else {
      values = optimize(batch, indices);
      if (!values) return run_halves(indices);
      if (store() != nullptr) store()->save(batch, setting(), *values);
    }
    note(indices, *values);
    return torch::cat({values->z_ND, values->delta_ND}, 1).to(model_.placement().device_of(layer_));
  }

  /// Returns nullopt if memory does not suffice.
  std::optional<OptimizedValues> optimize(const std::vector<const PreparedRequest*>& batch,
                                          const std::vector<int64_t>& indices) {
    int64_t finished = 0, steps = 0;
    try {
      OptimizedValues values = optimize_batch(model_, batch, layer_, options_, work_.launch, [&](int64_t more) {
        // for the time left it does not matter which of the requests are finished
        for (size_t i = static_cast<size_t>(finished); i < indices.size(); ++i) steps_.step(indices[i]);
        for (int64_t i = finished; i < finished + more; ++i) steps_.end(indices[static_cast<size_t>(i)]);
        finished += more;
        ++steps;
        progress_->advance_pieces();
        progress_->advance(more);
      });
      progress_->advance_pieces(options_.most_steps() - steps);  // steps that were not needed
      return values;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      progress_->advance_pieces(-steps);
      progress_->advance(-finished);
      for (const int64_t index : indices) steps_.restart(index);
      if (batch.size() == 1)
        throw PlacementError(
            cat("values: request ", batch[0]->id, ": not enough memory on ", model_.placement().description(),
                " even for this request alone. Run on a device with more memory, in bf16, or with fewer "
                "or shorter editor.contexts"));
      return std::nullopt;
    }
  }

  Tensor run_halves(const std::vector<int64_t>& indices) {
    log_warning(cat("values: not enough memory for ", indices.size(), " requests together: trying half as many"));
    progress_->expect_pieces(options_.most_steps());  // there are two batches instead of one
    {
      const std::lock_guard lock(mutex_);
      ++whole_.batching.halvings;
    }
    const auto middle = indices.begin() + static_cast<int64_t>(indices.size() / 2);
    return torch::cat({run_batch({indices.begin(), middle}), run_batch({middle, indices.end()})});
  }

  void note(const std::vector<int64_t>& indices, OptimizedValues& values) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const size_t place = static_cast<size_t>(indices[i]);
      whole_.losses[place] = std::move(values.losses[i]);
      whole_.initial_norms[place] = values.initial_norms[i];
      whole_.delta_norms[place] = values.delta_norms[i];
    }
    const std::lock_guard lock(mutex_);
    ValueBatching& batching = whole_.batching;
    batching.batches += 1;
    batching.largest = std::max(batching.largest, static_cast<int64_t>(indices.size()));
    batching.resumed += values.batching.resumed;
  }

  const ValueStore* store() const { return work_.values; }
  ValueStore::Setting setting() const { return {weights_key_, layer_, options_}; }

  static constexpr int64_t kLossParts = 4;

  const CausalLM& model_;
  std::span<const PreparedRequest> requests_;
  int64_t layer_;
  const ValueOptions& options_;
  const WorkContext& work_;
  std::string weights_key_;
  OptimizedValues whole_;
  std::mutex mutex_;  // guards the parts of whole_ that do not belong to one request
  StepsAhead steps_;  ///< one item for each request; those of other ranks are ended
  std::optional<Progress> progress_;
};

}  // namespace

namespace {

std::vector<std::string> read_kept_prompts(ConfigSection& section) {
  std::vector<std::string> prompts = read(section, ValuesSpec::kKeptPrompts);
  for (const std::string& prompt : prompts)
    if (!has_one_place(prompt))
      section.problem(ValuesSpec::kKeptPrompts.key,
                      cat("'", prompt, "': expected one {} in it, the place of the subject"));
  return prompts;
}

}  // namespace

ValueOptions parse_value_options(ConfigSection section, const ValueOptions& defaults) {
  ValueOptions options = defaults;
  options.steps = read_or_auto(section, ValuesSpec::kSteps);
  options.lr = read(section, ValuesSpec::kLr);
  options.weight_decay = read(section, ValuesSpec::kWeightDecay);
  options.clamp = read(section, ValuesSpec::kClamp);
  const bool has_chunks = options.takes_chunks || section.has(ValuesSpec::kChunkTokens.key);
  options.chunk_tokens = has_chunks ? read(section, ValuesSpec::kChunkTokens) : 0;
  if (options.chunk_tokens > 0 && !options.takes_chunks)
    section.problem(ValuesSpec::kChunkTokens.key, "expected 0: memit alone solves for several places of a request");
  options.kl = options.chunk_tokens == 0 || section.has(ValuesSpec::kKl.key) ? read(section, ValuesSpec::kKl) : 0;
  if (options.chunk_tokens > 0 && options.kl > 0)
    section.problem(ValuesSpec::kKl.key, "expected 0 with chunk_tokens: there is no subject for \"{subject} is a\"");
  options.kept_prompts = read_kept_prompts(section);
  options.kept_weight = read(section, ValuesSpec::kKeptWeight);
  if (options.chunk_tokens > 0 && !options.kept_prompts.empty())
    section.problem(ValuesSpec::kKeptPrompts.key, "expected none with chunk_tokens: there is no subject for them");
  options.stop_loss = read(section, ValuesSpec::kStopLoss);
  options.contexts_per_step = read(section, ValuesSpec::kContextsPerStep);
  options.batch = read(section, ValuesSpec::kBatch);
  if (options.stop == ValueStop::kLoss) options.stop = read<ValueStop>(section, ValuesSpec::kStop);
  if (options.site == ValueSite::kMlpAndAttnOut) options.nll_factor = read(section, ValuesSpec::kNllFactor);
  section.finish();
  return options;
}

bool still_falls(std::span<const double> losses) {
  constexpr auto kWatched = static_cast<size_t>(AutomaticSteps::kWatched);
  if (losses.size() < 2 * kWatched) return true;
  const auto watched = losses.end() - kWatched;
  return *std::min_element(watched, losses.end()) <
         (1 - AutomaticSteps::kLeastFall) * *std::min_element(losses.begin(), watched);
}

ValueSite site_in(const ModelConfig& config, ValueSite site) {
  return site == ValueSite::kBlockOut && has_weight(config, WeightKind::kMlpPostNorm) ? ValueSite::kMlpOut : site;
}

int64_t first_step_layer(const ModelConfig& config, ValueSite site, int64_t layer) {
  const bool is_scaled = site == ValueSite::kMlpOut && config.mlp_out_scale != 1;
  const bool is_inside = site == ValueSite::kMlpAndAttnOut || is_scaled || has_weight(config, WeightKind::kMlpPostNorm);
  return is_inside ? layer : layer + 1;
}

void check_step_graphs(const ModelConfig& config, const Placement& placement, int64_t layer) {
  check_graphs(placement, layer);
  for (int64_t above = layer; above < config.n_layers; ++above) {
    if (config.has_recurrence(above))
      throw PlacementError(cat("run.cuda_graphs: layer ", above,
                               " has a recurrent mixer, of whose steps no graph is made: expected layers "
                               "with attention alone. Set run.cuda_graphs: false"));
    if (config.has_experts(above))
      throw PlacementError(cat("run.cuda_graphs: layer ", above,
                               " has experts, and the host has to know at every step ",
                               "which tokens go to which: expected layers without. Set run.cuda_graphs: false"));
  }
}

OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options, const WorkContext& work) {
  ValueOptions own = options;
  own.site = site_in(model.config(), options.site);
  return ValueRun(model, requests, layer, own, work).run();
}

}  // namespace lancet
