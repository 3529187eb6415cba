// Whether training on related facts brings erased ones back.
#pragma once

#include <span>
#include <vector>

#include "lancet/erasure/audit.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// The training that is tried on an erased model: RelearnSpec::kMethod on the down projections of all
/// layers, all steps of it.
class Relearning {
 public:
  /// `related`: facts that may be trained, of which those stay that share a relation, or a prompt with another subject,
  /// with an erased one, and that have a `target_true`. All outlive this. Throws: ConfigError where none is left, and
  /// for a model whose down projections it does not train.
  Relearning(const JobConfig& job, const ModelFiles& files, std::vector<EditRequest> related,
             std::span<const EditRequest> erased);

  /// What it takes beside the erasure.
  Workload work() const;
  /// Facts that there are to train on.
  int64_t related() const { return static_cast<int64_t>(related_.size()); }

  /// Trains each of the job's numbers of facts that there are, from the weights as they are, which the model has again
  /// at the end, whatever is thrown. The first of the results is that of no training. `erased`: what the model says as
  /// it is, by fact.
  std::vector<Relearned> run(CausalLM& model, std::span<const ErasedFact> facts,
                             std::span<const FactAudit> erased) const;

 private:
  std::vector<std::vector<PromptAudit>> asked_after(CausalLM& model, std::span<const ErasedFact> facts,
                                                    int64_t count) const;

  JobConfig training_;
  const ModelFiles& files_;
  std::vector<int64_t> counts_;
  std::vector<EditRequest> related_;  ///< relation by relation in turn
};

}  // namespace lancet
