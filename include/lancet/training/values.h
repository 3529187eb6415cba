// The only value optimiser. For each request it finds the hidden state z* at the subject's last token, at one site of
// one layer, that makes the model say the target. Source: MEMIT (arXiv 2210.07229, section 4.2 and eq. 16), from ROME
// (arXiv 2202.05262, eq. 4); PMET (arXiv 2308.08742, section 3.3). Differs from the references: many requests run at
// once, each with its own loss, stop and clamp; layers up to the edited one are run once; logits are computed only
// where the loss needs them; target ids are spliced, not re-tokenised.
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

/// The site where the optimised vector is added, at the lookup token of every row.
enum class ValueSite {
  kBlockOut,  ///< the layer's output (MEMIT)
  kMlpOut,  ///< the down projection's output (ROME): without a norm or a factor after it the effect on the model is the
            ///< same as with kBlockOut, but h0 is the MLP's part of it
  kMlpAndAttnOut  ///< one vector at the MLP's output and one at the attention's (PMET); z is the MLP's
};

/// Returns where a method's vector is added in this model. If a norm is between the down projection and the residual
/// stream (Gemma 2, OLMo 2), the layer's output is not linear in the projection's output; the value is then the
/// projection's own output.
ValueSite site_in(const ModelConfig& config, ValueSite site);

/// Returns the first layer that a step runs: `layer` itself if the vector is added inside it, else the one above.
int64_t first_step_layer(const ModelConfig& config, ValueSite site, int64_t layer);

/// The conditions under which a request stops before it has used all steps.
enum class ValueStop {
  kLoss,       ///< its loss is below stop_loss
  kPredicted,  ///< as kLoss, or every target token is the most probable one in every context at two checks in a row
               ///< (after ENCORE, github.com/SasyaTitech/NAS)
  kLossOrPredicted  ///< as kLoss, or every target token is the most probable one in every context and the weighted KL
                    ///< is at most 0.01; while they are the most probable ones, the NLL counts a tenth (PMET's public
                    ///< code)
};

/// The rule of `steps: auto`. A request takes at most kMost steps. It stops earlier when its last kWatched steps have
/// not lowered the loss by a share of kLeastFall below the lowest loss before them. If its value is not found, it takes
/// at least 2 * kWatched steps.
struct AutomaticSteps {
  static constexpr int64_t kMost = 100;
  static constexpr int64_t kWatched = 25;
  static constexpr double kLeastFall = 0.01;
};

/// Whether more steps may lower the loss, according to AutomaticSteps, given one request's losses at all its steps.
bool still_falls(std::span<const double> losses);

/// The options that ValuesSpec describes.
struct ValueOptions {
  std::optional<int64_t> steps = {};  ///< nullopt: auto
  double lr = *ValuesSpec::kLr.fallback;
  double weight_decay = *ValuesSpec::kWeightDecay.fallback;
  double clamp = *ValuesSpec::kClamp.fallback;
  double kl = *ValuesSpec::kKl.fallback;
  std::vector<std::string> kept_prompts = {};  ///< templates about the subject; none: only "{subject} is a" counts
  double kept_weight = *ValuesSpec::kKeptWeight.fallback;
  double stop_loss = *ValuesSpec::kStopLoss.fallback;
  int64_t contexts_per_step = *ValuesSpec::kContextsPerStep.fallback;
  int64_t batch = *ValuesSpec::kBatch.fallback;
  ValueSite site = ValueSite::kBlockOut;  ///< the method's choice, as is `stop`
  ValueStop stop = ValueStop::kLoss;
  double nll_factor = *ValuesSpec::kNllFactor.fallback;  ///< the method's; the job's key if the site is kMlpAndAttnOut
  bool takes_chunks = false;                             ///< the method's choice
  int64_t chunk_tokens = *ValuesSpec::kChunkTokens.fallback;

  int64_t most_steps() const { return steps.value_or(AutomaticSteps::kMost); }
};

/// Reads `values:` of a job on top of a method's own defaults. Reports problems to the section.
ValueOptions parse_value_options(ConfigSection section, const ValueOptions& defaults = {});

/// The total loss and its parts at one step of one request.
struct ValueLoss {
  double total = 0;
  double nll = 0;           ///< weighted; mean over contexts of the mean over target tokens of -log p
  double kl = 0;            ///< weighted, with that of kept prompts
  double weight_decay = 0;  ///< weighted
};

/// How the requests were batched.
struct ValueBatching {
  int64_t batches = 0;
  int64_t largest = 0;   ///< requests in the largest batch
  int64_t halvings = 0;  ///< number of times a batch was halved because memory did not suffice
  int64_t resumed = 0;   ///< requests whose values an interrupted run had already found
};

struct OptimizedValues {
  Tensor z_ND;                                 ///< value dtype, on the edited layer's device
  Tensor delta_ND;                             ///< z - h0, of the same type and device
  std::vector<std::vector<ValueLoss>> losses;  ///< losses of each request at each of its steps
  std::vector<double> initial_norms;           ///< ||h0|| at the site of z
  std::vector<double> delta_norms;             ///< ||z - h0||
  ValueBatching batching;
};

class ValueStore;

/// The ranks that share the work of an edit, where finished values are saved against interruption, and how steps run.
struct WorkContext {
  Communicator& communicator;
  const ValueStore* values = nullptr;              ///< may be null
  LaunchMode launch = LaunchMode::kEachOperation;  ///< launch mode of steps; with graphs batches run one after another
  uint64_t seed = 0;                               ///< seed of a method's random draws
};

/// Checks that steps at `layer` can be graphs. Throws: PlacementError for layers on several devices or on a device
/// without graphs, or with experts.
void check_step_graphs(const ModelConfig& config, const Placement& placement, int64_t layer);

/// Collective. Optimises hidden states at the options' site of `layer`, with batches spread over the ranks; every rank
/// gets the whole result. Each request's held deltas are in place at the same site meanwhile. It uses the current
/// weights and changes none. Batches that the store holds are taken from it, and new ones are added when they are done.
/// A batch for which memory does not suffice is halved. Throws: PlacementError when memory does not suffice for one
/// request, and as check_step_graphs(); NumericError when a loss is not finite.
OptimizedValues optimize_values(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                const ValueOptions& options, const WorkContext& work);

// Values of finished batches on disk, so that a killed job resumes after them. A batch is used again only if everything
// that its values depend on is the same: the model's bytes, the type it runs in, the layer, the options, the batch's
// token ids.

class ValueStore {
 public:
  /// What values depend on in addition to their batch.
  struct Setting {
    std::string weights_key;  ///< result of current_weights()
    int64_t layer = 0;
    const ValueOptions& options;
  };

  /// `model_key`: a key of the unedited weights, the configuration and the type in which they run. `changes_key`:
  /// returns a key of what has been changed of the weights at the time of the call. Nothing is written before save().
  ValueStore(std::filesystem::path folder, std::string model_key, std::function<std::string()> changes_key = {})
      : folder_(std::move(folder)), model_key_(std::move(model_key)), changes_key_(std::move(changes_key)) {}

  /// Returns a key of the current weights. Not thread-safe.
  std::string current_weights() const { return model_key_ + (changes_key_ ? changes_key_() : ""); }

  /// Returns the values of a batch; nullopt when there are none, or the file is damaged.
  std::optional<OptimizedValues> load(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;
  /// Saves the values of a batch. Throws: CheckpointError when the disk refuses.
  void save(const std::vector<const PreparedRequest*>& batch, const Setting& setting,
            const OptimizedValues& values) const;
  /// Removes everything, when the job is done.
  void clear() const;

 private:
  std::filesystem::path file(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;

  std::filesystem::path folder_;
  std::string model_key_;
  std::function<std::string()> changes_key_;
};

}  // namespace lancet
