// The interface of an editing method, and what it works with. An editor sees requests, hidden states and algebra; never
// a device, a rank, a stream or a file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/deltas/solved_system.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/editing/contexts.h"
#include "lancet/editing/edit_outcome.h"
#include "lancet/editing/request_states.h"
#include "lancet/editing/solvers.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/statistics/curvature.h"
#include "lancet/statistics/null_space.h"
#include "lancet/training/text_training.h"
#include "lancet/training/values.h"

namespace lancet {

/// A method's backward passes through the layers from its lowest target on.
struct BackwardNeeds {
  int64_t batch = 1;         ///< requests of one pass
  bool trains_dense = true;  ///< each weight's whole change with Adam; else inputs and gradients of the tokens
  bool projects = false;     ///< gradients go through two bases of each weight
  bool whitens = false;      ///< gradients go through a matrix of their size, of down projections
};

/// What a method needs of its requests and of the job.
struct EditorNeeds {
  bool subject = true;      ///< requests must name their subject
  bool old_answer = false;  ///< requests must have target_true
  bool statistics = true;   ///< the job must have `statistics:`
  /// EditContext::null_space by this rule is used instead of covariance_factor.
  std::optional<NullSpaceRule> null_space = {};
  bool curvature = false;  ///< EditContext::curvature is used instead of covariance_factor
  std::optional<BackwardNeeds> backward = {};
  bool history = false;        ///< keys of earlier batches are part of every solve
  int64_t changes = 1;         ///< most changes of each weight by one batch; each has a column for every request
  bool finish = false;         ///< Editor::finish() changes weights
  int64_t solve_matrices = 0;  ///< [d_ffn, d_ffn] f64 that a solve makes of C's factor
};

/// What a job's statistics give of a layer, each on the layer's solve device.
struct LayerStatistics {
  std::function<Tensor(int64_t layer)> factor = {};
  std::function<NullSpace(int64_t layer)> null_space = {};
  std::function<Curvature(int64_t layer)> curvature = {};
};

/// The work that editors share, on the weights as they are at the moment of the call. Everything by request index: it
/// is spread over ranks without the editor knowing. An editor asks for the same things in the same order everywhere.
class EditContext {
 public:
  EditContext(const CausalLM& model, const Tokenizer& tokenizer, std::vector<std::string> contexts,
              LayerStatistics algebra, const WorkContext& work)
      : model_(model),
        tokenizer_(tokenizer),
        contexts_(std::move(contexts)),
        algebra_(std::move(algebra)),
        work_(work) {}

  virtual ~EditContext() = default;
  /// Sets where solved systems are noted from now on, on root. Null: nowhere, as at first.
  void keep_systems_in(std::vector<SolvedSystem>* systems) { systems_ = systems; }

  const ModelConfig& config() const { return model_.config(); }
  std::vector<PreparedRequest> prepare(std::span<const EditRequest> requests, const TargetRule& rule = {}) const {
    return prepare_requests(tokenizer_, requests, contexts_, target_form(rule, config(), tokenizer_));
  }
  /// Tokenizes requests for methods that know no subject.
  std::vector<TokenizedRequest> tokenize(std::span<const EditRequest> requests, const TargetRule& rule = {}) const {
    return tokenize_requests(tokenizer_, requests, target_form(rule, config(), tokenizer_).end);
  }

  /// A rehearsal watches this one.
  virtual OptimizedValues optimize_values(std::span<const PreparedRequest> requests, int64_t layer,
                                          const ValueOptions& options) const;

  /// Collective: those of `requests` that optimize_values() has under way together when it takes most memory.
  std::vector<PreparedRequest> heaviest(std::span<const PreparedRequest> requests, int64_t layer,
                                        const ValueOptions& options) const;

  /// Collective. What a pass over the requests' plain prompts gives at the point of `at` of each of `layers`, all above
  /// `at`, when it gets `z_ND` in the place of the lookup token's value there: by layer, [N, D] f64 on its solve
  /// device.
  std::map<int64_t, Tensor> replay(std::span<const PreparedRequest> requests, HookSite at, const Tensor& z_ND,
                                   std::span<const int64_t> layers) const;

  /// `requests` and this outlive what is returned.
  RequestStates states_of(std::span<const PreparedRequest> requests) const { return {*this, requests}; }

  /// RequestStates::collect and collect_keys, once.
  Tensor collect(std::span<const PreparedRequest> requests, HookSite site, ContextMean mean) const {
    return states_of(requests).collect(site, mean);
  }
  Tensor collect_keys(std::span<const PreparedRequest> requests, int64_t layer,
                      ContextMean mean = ContextMean::kGrouped) const {
    return states_of(requests).collect_keys(layer, mean);
  }

  CapturedGradients capture_token_gradients(std::span<const TokenizedRequest> requests,
                                            std::span<const WeightId> weights, const CaptureOptions& options) const;

  /// `options.projection` may ask for algebra, as in solve().
  TrainedWeights train_weights(std::span<const TokenizedRequest> requests, std::span<const WeightId> weights,
                               const TrainingOptions& options) const;

  /// A change of one of `layer`'s weights, on the layer's solve device: `make` runs once for all copies of the model,
  /// which get the same bits. What only the change needs should be made in it; it asks for no values, keys or hidden
  /// states (std::logic_error).
  WeightDelta solve(int64_t layer, const std::function<WeightDelta()>& make) const;

  /// Numbers that an editor decides by, on the host: made once for all, so that every copy decides alike. `measure` may
  /// ask for algebra, as in solve().
  Tensor decide_by(const std::function<Tensor()>& measure) const;

  /// L of C = L L^T, C being of the layer's keys on the unedited model: [F, F] f64. Of one of the editor's target
  /// layers. It may be gigabytes: take one at a time, read only. Throws: std::logic_error but in solve() and
  /// decide_by().
  /// PlacementError when it lies elsewhere than the layer's solves.
  Tensor covariance_factor(int64_t layer) const;

  /// Returns the layer's null space, or the curvature of the loss on text, likewise, for editors that need them.
  NullSpace null_space(int64_t layer) const;
  Curvature curvature(int64_t layer) const;

  /// Notes a system for whoever keeps what changes were solved from; `system.change` counts all changes of the weight
  /// in the transaction. Does nothing where nobody keeps them.
  void note_system(SolvedSystem system) const;

  /// Moves a result of one layer's device to another layer's solve device.
  Tensor to_solve_device(const Tensor& tensor, int64_t layer) const;

 private:
  friend RequestStates;

  const CausalLM& model_;
  const Tokenizer& tokenizer_;
  std::vector<std::string> contexts_;
  void check_all_are_here() const;
  void check_is_solving() const;

  LayerStatistics algebra_;
  WorkContext work_;
  std::vector<SolvedSystem>* systems_ = nullptr;
  mutable bool is_solving_ = false;
};

/// Keys and residuals of a layer's down projection, as batches had them, to be solved again.
struct GivenSystem {
  int64_t layer = 0;
  Tensor keys_FN = {};
  Tensor residuals_DN = {};
  Tensor history_FM = {};  ///< keys of earlier batches; undefined: none
};

struct GivenSolution {
  LowRankDelta change = {};     ///< a column for each key
  Tensor inverse_gram_NN = {};  ///< SolvedSystem::inverse_gram_NN
};

class Editor {
 public:
  virtual ~Editor() = default;
  virtual EditorNeeds needs() const = 0;
  /// Templates that the job gave or asked for; null: the method uses none.
  virtual const ContextOptions* contexts() const = 0;
  /// How it optimises values; null: it finds none.
  virtual const ValueOptions* values() const = 0;
  virtual TargetRule target_rule() const { return {}; }
  /// The weights that edit() may change.
  /// Throws: ConfigError when an option does not fit the model (a layer out of range).
  virtual std::vector<WeightId> targets(const ModelConfig& config) const = 0;
  /// The layers at whose outputs it finds values, in their order; empty where it finds none. Throws: as targets().
  virtual std::vector<int64_t> value_layers(const ModelConfig&) const { return {}; }
  virtual EditorState make_state() const { return {}; }
  /// Collective: the method's solve of what is given, with what the layer's statistics give. Numbers that are `auto`
  /// are the state's, or by these keys. On the host, f64; the inverse on root alone. Throws: ConfigError for methods
  /// that solve no such systems.
  virtual GivenSolution solve_given(const EditContext& context, const GivenSystem& given, EditorState& state) const;
  /// What is done once, after the last batch.
  virtual void finish(const EditContext&, WeightTransaction&) const {}
  /// Edits all requests as one batch: applies its deltas to the transaction, moves `state` on.
  virtual EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                           WeightTransaction& transaction) const = 0;
};

/// The layer of each of the editor's targets, in their order. Throws: as Editor::targets.
std::vector<int64_t> target_layers(const Editor& editor, const ModelConfig& config);

}  // namespace lancet
