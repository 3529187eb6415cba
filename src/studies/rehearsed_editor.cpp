#include "rehearsed_editor.h"

#include <algorithm>
#include <optional>

#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/outcome/stopwatch.h"

namespace lancet {
namespace {

/// Numbers of steps of two short runs of the largest batches. The difference of their times is the time of the steps
/// between.
constexpr int64_t kFewSteps = 2, kMoreSteps = 4;

std::string requests_text(int64_t count) { return counted(static_cast<size_t>(count), "request"); }

/// Measures the costs of stages.
class Meter {
 public:
  /// Adds the costs since the last call to `cost`. Returns the seconds.
  double lap(StageCost& cost, const std::string& name) {
    stopwatch_.lap(name);
    const StageCost& lap = stopwatch_.stages().back();
    cost.stage = name;
    cost.seconds += lap.seconds;
    raise_to(cost.peaks, lap.peaks);
    return lap.seconds;
  }

 private:
  Stopwatch stopwatch_;
};

/// Optimises the values of the requests that it is asked for. Then it runs a few steps on as many of the job's requests
/// as the job optimises together.
class RehearsedContext final : public EditContext {
 public:
  RehearsedContext(const EditContext& context, const std::vector<EditRequest>& all, const TargetRule& rule,
                   EditMeasurements& measured, Meter& meter)
      : EditContext(context), all_(all), rule_(rule), measured_(measured), meter_(meter) {}

  OptimizedValues optimize_values(std::span<const PreparedRequest> requests, int64_t layer,
                                  const ValueOptions& options) const override {
    note_weights();
    OptimizedValues values = EditContext::optimize_values(requests, layer, options);
    meter_.lap(measured_.values, cat("values, ", requests_text(measured_.edited)));
    layer_ = layer;
    const bool goes_on = requests.front().chunk > 0;  // these are later chunks of requests
    if (!goes_on) n_found_ = steps_ = 0;
    for (const std::vector<ValueLoss>& losses : values.losses) steps_ += std::ssize(losses);
    n_found_ += std::ssize(values.losses);
    measured_.mean_steps = static_cast<double>(steps_) / static_cast<double>(n_found_);
    if (goes_on) return values;
    measured_.one_by_one = static_cast<int64_t>(requests.size()) < measured_.edited;
    if (!measured_.one_by_one) run_together(layer, options);
    return values;
  }

  void note_weights() const { meter_.lap(measured_.weights, cat("weights, ", requests_text(measured_.edited))); }

  /// Returns the layer at which values were optimised.
  std::optional<int64_t> layer() const { return layer_; }

 private:
  void run_together(int64_t layer, ValueOptions options) const {
    const std::vector<PreparedRequest> all = prepare(all_, rule_);
    const std::vector<PreparedRequest> requests = heaviest(all, layer, options);
    measured_.n_values = std::ssize(all);
    measured_.n_together = static_cast<int64_t>(requests.size());
    options.stop_loss = 0;  // no request stops early
    options.stop = ValueStop::kLoss;
    const auto seconds_of = [&](int64_t steps) {
      options.steps = steps;
      measured_.halvings += EditContext::optimize_values(requests, layer, options).batching.halvings;
      return meter_.lap(measured_.together, cat("values, ", counted(requests.size(), "request"), " at a time"));
    };
    const double few_s = seconds_of(kFewSteps), more_s = seconds_of(kMoreSteps);
    measured_.together_step_s = std::max(0.0, more_s - few_s) / static_cast<double>(kMoreSteps - kFewSteps);
    measured_.together_begin_s = std::max(0.0, few_s - static_cast<double>(kFewSteps) * measured_.together_step_s);
  }

  const std::vector<EditRequest>& all_;
  TargetRule rule_;
  EditMeasurements& measured_;
  Meter& meter_;
  mutable std::optional<int64_t> layer_;
  mutable int64_t n_found_ = 0, steps_ = 0;  ///< values since the last first chunks, and their steps
};

/// Returns the first requests whose prompts, in all contexts, fill a forward pass.
std::vector<PreparedRequest> fill_a_pass(std::vector<PreparedRequest> requests) {
  int64_t tokens = 0;
  size_t count = 0;
  for (; count < requests.size() && tokens < kForwardTokens; ++count)
    for (const LocatedPrompt& prompt : requests[count].prompts) tokens += static_cast<int64_t>(prompt.ids.size());
  requests.resize(count);
  return requests;
}

}  // namespace

EditOutcome RehearsedEditor::edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                                  WeightTransaction& transaction) const {
  const std::span<const EditRequest> first = requests.first(std::min(requests.size(), static_cast<size_t>(n_edited_)));
  measured_.edited = static_cast<int64_t>(first.size());
  measured_.layers = static_cast<int64_t>(targets(context.config()).size());
  Meter meter;
  const RehearsedContext rehearsed(context, all_, target_rule(), measured_, meter);
  EditOutcome outcome = editor_->edit(rehearsed, first, state, transaction);
  rehearsed.note_weights();
  if (rehearsed.layer() && !measured_.one_by_one) {
    const std::vector<PreparedRequest> some = fill_a_pass(context.prepare(all_, target_rule()));
    measured_.keyed = static_cast<int64_t>(some.size());
    context.collect_keys(some, *rehearsed.layer());
    context.collect(some, {HookPoint::kBlockOut, *rehearsed.layer()}, ContextMean::kPlain);
    meter.lap(measured_.keys, cat("keys of a layer, ", counted(some.size(), "request")));
  }
  outcome.requests.resize(requests.size());
  return outcome;
}

void RehearsedEditor::finish(const EditContext& context, WeightTransaction& transaction) const {
  const auto count_deltas = [&] {
    size_t count = 0;
    for (const WeightTransaction::Entry& entry : transaction.entries()) count += entry.deltas.size();
    return count;
  };
  const size_t before = count_deltas();
  Meter meter;
  editor_->finish(context, transaction);
  if (count_deltas() > before) meter.lap(measured_.finish, "weights, after the last batch");
}

}  // namespace lancet
