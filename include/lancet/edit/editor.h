// The interface of an editing method, and what it works with. An editor sees requests, hidden states and algebra; never
// a device, a rank, a stream or a file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit/contexts.h"
#include "lancet/edit/prepared_request.h"
#include "lancet/edit/solvers.h"
#include "lancet/edit/values.h"
#include "lancet/edit/weight_update.h"

namespace lancet {

/// What a method needs of its requests and of the job.
struct EditorNeeds {
  bool subject = true;     ///< requests must name their subject
  bool statistics = true;  ///< the job must have `statistics:`
};

/// What a method carries from one batch of edits to the next (keys of earlier edits, running normalisers): named
/// tensors on the host, so that it can be saved and loaded.
struct EditorState {
  std::map<std::string, Tensor> tensors;
  int64_t edits = 0;  ///< requests edited so far
};

/// What happened to one request.
struct RequestOutcome {
  int64_t steps = 0;        ///< forward passes of the value optimisation
  double initial_loss = 0;  ///< total loss before
  double final_loss = 0;    ///< at the last step
  double initial_norm = 0;  ///< ||h0||
  double delta_norm = 0;    ///< ||z - h0||
};

struct EditOutcome {
  std::vector<RequestOutcome> requests;
  ValueBatching batching;
  std::vector<std::string> warnings;
};

/// The work that editors share, on the weights as they are at the moment of the call. Everything by request index: it
/// is spread over ranks without the editor knowing. An editor asks for the same things in the same order everywhere.
class EditContext {
 public:
  /// L of a layer's C = L L^T: [F, F] f64 on the layer's solve device; C is of the layer's keys on the unedited model.
  using FactorSource = std::function<Tensor(int64_t layer)>;

  EditContext(const CausalLM& model, const Tokenizer& tokenizer, std::vector<std::string> contexts,
              FactorSource factors, const Sharing& sharing)
      : model_(model),
        tokenizer_(tokenizer),
        contexts_(std::move(contexts)),
        factors_(std::move(factors)),
        sharing_(sharing) {}

  virtual ~EditContext() = default;

  const ModelConfig& config() const { return model_.config(); }
  std::vector<PreparedRequest> prepare(std::span<const EditRequest> requests) const {
    return prepare_requests(tokenizer_, requests, contexts_);
  }

  /// A rehearsal watches this one.
  virtual OptimizedValues optimize_values(std::span<const PreparedRequest> requests, int64_t layer,
                                          const ValueOptions& options) const;

  /// Collective. Those of `requests` that optimize_values() has under way together when it takes most memory.
  std::vector<PreparedRequest> heaviest(std::span<const PreparedRequest> requests, int64_t layer,
                                        const ValueOptions& options) const;

  /// [F, N] f64 on the layer's solve device: half the plain prompt's key, half the mean over the other contexts'
  /// (MEMIT, section 4).
  Tensor collect_keys(std::span<const PreparedRequest> requests, int64_t layer) const;

  /// [N, D] f64 on `layer`'s solve device: output of `layer` at the plain prompt's lookup token.
  Tensor collect_hidden(std::span<const PreparedRequest> requests, int64_t layer) const;

  /// A change of one of `layer`'s weights, on the layer's solve device: `make` runs once for all copies of the model,
  /// which get the same bits. What only the change needs should be made in it; it asks for no values, keys or hidden
  /// states (std::logic_error).
  WeightDelta solve(int64_t layer, const std::function<WeightDelta()>& make) const;

  /// The factor of one of the editor's target layers. It may be gigabytes: take one at a time, read only. Throws:
  /// std::logic_error but in solve(). PlacementError when it lies elsewhere than the layer's solves.
  Tensor covariance_factor(int64_t layer) const;

  /// Moves a result of one layer's device to another layer's solve device.
  Tensor to_solve_device(const Tensor& tensor, int64_t layer) const;

 private:
  const CausalLM& model_;
  const Tokenizer& tokenizer_;
  std::vector<std::string> contexts_;
  FactorSource factors_;
  void check_all_are_here() const;

  Sharing sharing_;
  mutable bool is_solving_ = false;
};

class Editor {
 public:
  virtual ~Editor() = default;
  virtual EditorNeeds needs() const = 0;
  /// Templates that the job gave or asked for.
  virtual const ContextOptions& contexts() const = 0;
  /// The weights that edit() may change.
  /// Throws: ConfigError when an option does not fit the model (a layer out of range).
  virtual std::vector<WeightId> targets(const ModelConfig& config) const = 0;
  virtual EditorState make_state() const { return {}; }
  /// Edits all requests as one batch: applies its deltas to the transaction, moves `state` on.
  virtual EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                           WeightTransaction& transaction) const = 0;
};

}  // namespace lancet
