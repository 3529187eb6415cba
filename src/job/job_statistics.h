// A job's statistics, from its options to the factors of the edited layers.
#pragma once

#include <memory>
#include <vector>

#include "lancet/edit/corpus.h"
#include "lancet/edit/derived_store.h"
#include "lancet/edit/imported_statistics.h"
#include "lancet/edit/self_corpus.h"
#include "lancet/job/job_config.h"
#include "lancet/job/model_session.h"
#include "lancet/job/statistics_report.h"

namespace lancet {

class JobStatistics {
 public:
  /// Does what can fail without the model's weights. `job` and `files` outlive this; the editor must need statistics.
  /// Throws: ConfigError when the corpus does not do; CheckpointError when files to import do not, all of them at once.
  JobStatistics(const JobConfig& job, const ModelFiles& files);

  /// Puts what the editor needs of all layers that it changes into the cache. `model`: not yet edited; outlives this.
  /// Throws: CheckpointError, NumericError.
  void prepare(const CausalLM& model);

  /// What the editor works with: factors, or null spaces where it needs those. After prepare(); not beyond this.
  LayerAlgebra algebra() const;

  /// After prepare().
  StatisticsReport report() const;

 private:
  std::shared_ptr<MomentSource> open_moments(const CausalLM& model) const;

  const JobConfig& job_;
  const ModelFiles& files_;
  std::vector<int64_t> layers_;
  CorpusTokens corpus_;                           // of kCorpus
  SelfCorpusPlan plan_;                           // of kSelf
  std::shared_ptr<ImportedStatistics> imported_;  // of kImport
  std::shared_ptr<MomentSource> moments_;
  std::unique_ptr<DerivedStore> derived_;
};

}  // namespace lancet
