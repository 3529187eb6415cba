// The interface of an editing method, and the context it works with. An editor handles requests, hidden states and
// algebra; it never sees a device, a rank, a stream or a file.
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
#include "lancet/editing/editor_needs.h"
#include "lancet/editing/kept_results.h"
#include "lancet/editing/request_states.h"
#include "lancet/editing/solvers.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/statistics/curvature.h"
#include "lancet/statistics/null_space.h"
#include "lancet/training/text_training.h"
#include "lancet/training/values.h"

namespace lancet {

/// The statistics of a layer that the job provides, each on the layer's solve device.
struct LayerStatistics {
  std::function<Tensor(int64_t layer)> factor = {};
  std::function<NullSpace(int64_t layer)> null_space = {};
  std::function<Curvature(int64_t layer)> curvature = {};
};

/// The work that editors share, on the weights as they are at the time of the call. Everything is indexed by request
/// and is distributed over ranks without the editor knowing. On every rank an editor must make the same calls in the
/// same order.
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
  /// Sets where solved systems are stored from now on, on root. Null, the default: nowhere.
  void keep_systems_in(std::vector<SolvedSystem>* systems) { systems_ = systems; }

  const ModelConfig& config() const { return model_.config(); }
  std::vector<PreparedRequest> prepare(std::span<const EditRequest> requests, const TargetRule& rule = {}) const {
    return prepare_requests(tokenizer_, requests, contexts_, target_form(rule, config(), tokenizer_));
  }
  /// Tokenizes requests for methods that use no subject.
  std::vector<TokenizedRequest> tokenize(std::span<const EditRequest> requests, const TargetRule& rule = {}) const {
    return tokenize_requests(tokenizer_, requests, target_form(rule, config(), tokenizer_).end);
  }

  /// Virtual so that a rehearsal can observe it.
  virtual OptimizedValues optimize_values(std::span<const PreparedRequest> requests, int64_t layer,
                                          const ValueOptions& options) const;

  /// Collective. Returns those of `requests` that optimize_values() runs together when it uses most memory.
  std::vector<PreparedRequest> heaviest(std::span<const PreparedRequest> requests, int64_t layer,
                                        const ValueOptions& options) const;

  /// Collective. Runs the requests' plain prompts with `z_ND` in place of the lookup token's value at `at`. Returns the
  /// values at the same point of each of `layers`, which all lie above `at`: by layer, [N, D] f64 on its solve device.
  std::map<int64_t, Tensor> replay(std::span<const PreparedRequest> requests, HookSite at, const Tensor& z_ND,
                                   std::span<const int64_t> layers) const;

  /// `requests` and this must outlive the result.
  RequestStates states_of(std::span<const PreparedRequest> requests) const { return {*this, requests}; }

  /// Single calls of RequestStates::collect and collect_keys.
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

  /// Returns a change of a weight of `layer`, on the layer's solve device. `make` runs once for all copies of the
  /// model, and all get the same bits. Compute in `make` what only the change needs. `make` must not ask for values,
  /// keys or hidden states (std::logic_error).
  WeightDelta solve(int64_t layer, const std::function<WeightDelta()>& make) const;

  /// Returns numbers, on the host, on which an editor bases a decision. They are computed once for all copies, so that
  /// every copy decides alike. `measure` may ask for algebra, as in solve().
  Tensor decide_by(const std::function<Tensor()>& measure) const;

  /// Returns L of C = L L^T, [F, F] f64, C of the layer's keys on the unedited model. `layer` must be a target layer of
  /// the editor. L may take gigabytes: use one at a time, read only. Throws: std::logic_error outside solve() and
  /// decide_by(); PlacementError if it is not on the layer's solve device.
  Tensor covariance_factor(int64_t layer) const;

  /// Return the layer's null space and the curvature of the loss on text, under the same rules.
  NullSpace null_space(int64_t layer) const;
  Curvature curvature(int64_t layer) const;

  /// Records a system, if systems are kept. `system.change` counts all changes of the weight in the transaction.
  void note_system(SolvedSystem system) const;

  /// Moves a tensor from one layer's device to another layer's solve device.
  Tensor to_solve_device(const Tensor& tensor, int64_t layer) const;

  /// Returns what the editor keeps under this type while this context or a copy of it exists; at first the type's
  /// default. An editor itself keeps nothing: other runs of the job use it too.
  template <typename Kept>
  Kept& kept() const {
    return kept_->of_type<Kept>();
  }

 private:
  friend RequestStates;

  const CausalLM& model_;
  const Tokenizer& tokenizer_;
  std::vector<std::string> contexts_;
  void check_all_are_here() const;
  void check_is_solving() const;

  LayerStatistics algebra_;
  WorkContext work_;
  std::shared_ptr<KeptResults> kept_ = std::make_shared<KeptResults>();
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

/// A method with its options. Nothing in it changes once it is made, so all runs of a job share one.
class Editor {
 public:
  virtual ~Editor() = default;
  virtual EditorNeeds needs() const = 0;
  /// Returns the templates that the job gave or asked for; null: the method uses none.
  virtual const ContextOptions* contexts() const = 0;
  /// Returns how the method optimises values; null: it finds none.
  virtual const ValueOptions* values() const = 0;
  virtual TargetRule target_rule() const { return {}; }
  /// Returns the weights that edit() may change. Throws: ConfigError if an option does not fit the model (a layer out
  /// of range).
  virtual std::vector<WeightId> targets(const ModelConfig& config) const = 0;
  /// Returns the layers at whose outputs values are found, in order; empty: none are found. Throws: as targets().
  virtual std::vector<int64_t> value_layers(const ModelConfig&) const { return {}; }
  virtual EditorState make_state() const { return {}; }
  /// Collective. Solves the given system as the method does, with the layer's statistics. Options with `auto` take the
  /// state's value, or one chosen by these keys. On the host, f64; the inverse on root alone. Throws: ConfigError for
  /// methods that solve no such systems.
  virtual GivenSolution solve_given(const EditContext& context, const GivenSystem& given, EditorState& state) const;
  /// Does what the method does once, after the last batch.
  virtual void finish(const EditContext&, WeightTransaction&) const {}
  /// Edits all requests as one batch: applies its deltas to the transaction and updates `state`.
  virtual EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                           WeightTransaction& transaction) const = 0;
};

/// Returns the layer of each of the editor's targets, in their order. Throws: as Editor::targets.
std::vector<int64_t> target_layers(const Editor& editor, const ModelConfig& config);

}  // namespace lancet
