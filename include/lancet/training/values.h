// The one value optimiser: for each request the hidden state z* at the subject's last token, at one site of one layer,
// that makes the model say the target. Source: MEMIT (arXiv 2210.07229, section 4.2 and eq. 16), from ROME
// (arXiv 2202.05262, eq. 4); PMET (arXiv 2308.08742, section 3.3). Differs from the references: many requests at once,
// each with its own loss, stop and clamp; layers up to the edited one are run once; logits only where the loss needs
// them; target ids are spliced, not re-tokenised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/spec/values_spec.h"

namespace lancet {

/// Site where the optimised vector is added, at the lookup token of every row.
enum class ValueSite {
  kBlockOut,      ///< the layer's output (MEMIT)
  kMlpOut,        ///< the down projection's output (ROME): without a norm or a factor after it the model moves as with
                  ///< kBlockOut, but h0 is the MLP's part of it
  kMlpAndAttnOut  ///< one vector at the MLP's output, one at the attention's (PMET); z is the MLP's
};

/// Returns where a method's vector is added in this model. Where a norm lies between the down projection and the
/// residual stream (Gemma 2, OLMo 2), the layer's output does not follow the projection's linearly: the value is its
/// own output there.
ValueSite site_in(const ModelConfig& config, ValueSite site);

/// The first layer that a step runs: `layer` itself where the vector is added inside it, else the one above.
int64_t first_step_layer(const ModelConfig& config, ValueSite site, int64_t layer);

/// Conditions under which a request is done before its steps are.
enum class ValueStop {
  kLoss,            ///< its loss is below stop_loss
  kPredicted,       ///< or every target token is the most probable one in every context at two checks in a row (after
                    ///< ENCORE, github.com/SasyaTitech/NAS)
  kLossOrPredicted  ///< or every target token is the most probable one in every context and the weighted KL is at most
                    ///< 0.01; while the former holds, the NLL counts a tenth (PMET's public code)
};

/// Rule of `steps: auto`: the most that a request takes; how many of its last steps have to take which share off the
/// lowest loss before them, or it is done. A request whose value is not found takes at least twice as many as are
/// watched.
struct AutomaticSteps {
  static constexpr int64_t kMost = 100;
  static constexpr int64_t kWatched = 25;
  static constexpr double kLeastFall = 0.01;
};

/// Whether more steps may bring the loss down: by AutomaticSteps, of one request's losses at each of its steps.
bool still_falls(std::span<const double> losses);

/// Options that ValuesSpec describes.
struct ValueOptions {
  std::optional<int64_t> steps = {};  ///< nullopt: auto
  double lr = *ValuesSpec::kLr.fallback;
  double weight_decay = *ValuesSpec::kWeightDecay.fallback;
  double clamp = *ValuesSpec::kClamp.fallback;
  double kl = *ValuesSpec::kKl.fallback;
  double stop_loss = *ValuesSpec::kStopLoss.fallback;
  int64_t contexts_per_step = *ValuesSpec::kContextsPerStep.fallback;
  int64_t batch = *ValuesSpec::kBatch.fallback;
  ValueSite site = ValueSite::kBlockOut;  ///< the method's choice, as are the next two
  ValueStop stop = ValueStop::kLoss;
  double nll_factor = *ValuesSpec::kNllFactor.fallback;  ///< a job's key where the method's site is kMlpAndAttnOut
  bool takes_chunks = false;                             ///< the method's choice
  int64_t chunk_tokens = *ValuesSpec::kChunkTokens.fallback;

  int64_t most_steps() const { return steps.value_or(AutomaticSteps::kMost); }
};

/// `values:` of a job over a method's own defaults. Problems go to the section.
ValueOptions parse_value_options(ConfigSection section, const ValueOptions& defaults = {});

/// The total loss and its parts at one step of one request.
struct ValueLoss {
  double total = 0;
  double nll = 0;           ///< weighted; mean over contexts of the mean over target tokens of -log p
  double kl = 0;            ///< weighted
  double weight_decay = 0;  ///< weighted
};

/// How the requests were run.
struct ValueBatching {
  int64_t batches = 0;
  int64_t largest = 0;   ///< requests of the largest batch
  int64_t halvings = 0;  ///< halvings of batches that memory did not suffice for
  int64_t resumed = 0;   ///< requests whose values an interrupted run had found
};

struct OptimizedValues {
  Tensor z_ND;                                 ///< value dtype, on the edited layer's device
  Tensor delta_ND;                             ///< z - h0, likewise
  std::vector<std::vector<ValueLoss>> losses;  ///< losses of each request at each step run
  std::vector<double> initial_norms;           ///< ||h0||, of the site that z is of
  std::vector<double> delta_norms;             ///< ||z - h0||
  ValueBatching batching;
};

class ValueStore;

/// Ranks that share the work of an edit, where finished values are kept against interruption, and how steps run.
struct WorkContext {
  Communicator& communicator;
  const ValueStore* values = nullptr;              ///< may be null
  LaunchMode launch = LaunchMode::kEachOperation;  ///< mode of steps; graphs have their batches one after another
  uint64_t seed = 0;                               ///< seed of what a method draws
};

/// Throws: PlacementError where steps at `layer` cannot be graphs: layers on several devices or on none that has
/// graphs, or with experts.
void check_step_graphs(const ModelConfig& config, const Placement& placement, int64_t layer);

/// Collective: batches are spread over ranks, all of which get the whole.
/// Hidden states at the options' site of `layer`, while each request's held deltas are in their places at the same
/// site. On the weights as they are; changes none of them. Batches that the
/// store holds are taken from there, the others put there when they are done. A batch that memory does not suffice for
/// is halved.
/// Throws: PlacementError when memory does not suffice for one request, and as check_step_graphs(); NumericError when a
/// loss is not finite.
OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options, const WorkContext& work);

// Values of finished batches on disk, so that a killed job goes on after them. A batch is found again only by all that
// its values depend on: the model's bytes, the type it runs in, the layer, the options, the batch's token ids.

class ValueStore {
 public:
  /// What values depend on besides their batch.
  struct Setting {
    std::string weights_key;  ///< what current_weights() gives
    int64_t layer = 0;
    const ValueOptions& options;
  };

  /// `model_key`: names the unedited weights, the configuration and the type that they run in; `changes_key`: what has
  /// been changed of the weights at the moment of the call. Nothing is written before save().
  ValueStore(std::filesystem::path folder, std::string model_key, std::function<std::string()> changes_key = {})
      : folder_(std::move(folder)), model_key_(std::move(model_key)), changes_key_(std::move(changes_key)) {}

  /// The weights as they are now. Not from several threads.
  std::string current_weights() const { return model_key_ + (changes_key_ ? changes_key_() : ""); }

  /// nullopt when there is none; a damaged file is as good as none.
  std::optional<OptimizedValues> load(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;
  /// Throws: CheckpointError when the disk refuses.
  void save(const std::vector<const PreparedRequest*>& batch, const Setting& setting,
            const OptimizedValues& values) const;
  /// Removes everything: the job is done.
  void clear() const;

 private:
  std::filesystem::path file(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;

  std::filesystem::path folder_;
  std::string model_key_;
  std::function<std::string()> changes_key_;
};

}  // namespace lancet
