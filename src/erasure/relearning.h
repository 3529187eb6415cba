// Measures whether training on related facts brings erased facts back.
#pragma once

#include <span>
#include <vector>

#include "lancet/erasure/audit.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// The training of an erased model: RelearnSpec::kMethod on the down projections of all layers, with all steps.
class Relearning {
 public:
  /// `related`: candidates for training. Only facts with a `target_true` are used that share a relation with an erased
  /// fact, or the prompt with another subject. All arguments must outlive this object. Throws: ConfigError if no fact
  /// is left, or if the method cannot train the model's down projections.
  Relearning(const JobConfig& job, const ModelFiles& files, std::vector<EditRequest> related,
             std::span<const EditRequest> erased);

  /// Returns the work that is needed in addition to the erasure.
  Workload work() const;
  /// Returns how many facts there are to train on.
  int64_t related() const { return static_cast<int64_t>(related_.size()); }

  /// Trains on each of the job's numbers of facts (up to the number there are), each time from the current weights,
  /// which are restored at the end, also after an exception. The first result is without training. `erased`: what the
  /// erased model says, by fact.
  std::vector<Relearned> run(CausalLM& model, std::span<const ErasedFact> facts,
                             std::span<const FactAudit> erased) const;

 private:
  std::vector<std::vector<PromptAudit>> asked_after(CausalLM& model, std::span<const ErasedFact> facts,
                                                    int64_t count) const;

  ResolvedJob training_;
  const ModelFiles& files_;
  std::vector<int64_t> counts_;
  std::vector<EditRequest> related_;  ///< sorted so that the relations take turns
};

}  // namespace lancet
