// The statistics of a job, from its options to the factors of the edited layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/plan/model_session.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/imported_null_space.h"
#include "lancet/statistics/imported_statistics.h"
#include "lancet/statistics/self_corpus.h"
#include "lancet/statistics/spectrum_store.h"
#include "lancet/statistics/statistics_store.h"

namespace lancet {

class JobStatistics {
 public:
  /// Does everything that can fail without the model's weights. Only root looks for corpora and for files to import.
  /// `job` and `files` must outlive this; the editor must need statistics. `corpus`: the job's corpus if it has been
  /// read already. Throws: ConfigError when the corpus is unsuitable; CheckpointError when files to import are, with
  /// all problems at once.
  JobStatistics(const ResolvedJob& job, const ModelFiles& files, const Communicator& communicator,
                std::shared_ptr<const CorpusTokens> corpus = nullptr);
  /// Uses `layers` (ascending) in place of the layers that the editor changes.
  JobStatistics(const ResolvedJob& job, const ModelFiles& files, const Communicator& communicator,
                std::vector<int64_t> layers, std::shared_ptr<const CorpusTokens> corpus = nullptr);

  /// Sets where the matrices that solves read are kept as long as the model lives. Call it before prepare(). Without
  /// it, nothing is kept.
  void keep_in(std::shared_ptr<KeptMatrices> kept) { kept_ = std::move(kept); }

  /// Returns the corpus, for other methods that use the same statistics. Null if no corpus was read.
  std::shared_ptr<const CorpusTokens> corpus() const { return corpus_; }

  /// Adds to `work` how much text there is, if it has been read.
  void describe(Workload& work) const;

  /// Whether the cache has as many files of the kind that the editor needs as there are layers. It only looks at their
  /// names.
  static bool may_be_cached(const ResolvedJob& job, const ModelConfig& config);
  /// Whether prepare() would find everything that the editor needs in root's cache. If that is possible, it reads the
  /// bytes of the weights that the keys depend on, or of all weights if the model writes the text. On root.
  bool is_cached(const Checkpoint& checkpoint) const;

  /// Returns the number of tokens of a pass over the corpus. On root.
  int64_t text_tokens() const { return corpus_ ? corpus_->tokens : plan_.tokens; }

  /// Collective. Puts into root's cache what the editor needs of all layers that it changes. `model`: not yet edited;
  /// it must outlive this. `content_hash`: of the model's checkpoint; only `corpus: self` needs it. Throws:
  /// CheckpointError, NumericError.
  void prepare(const CausalLM& model, const std::string& content_hash, Communicator& communicator);

  /// Whether there are second moments; imported projections have none.
  bool has_moments() const { return !projections_; }

  /// Collective. Puts the second moments themselves, which must exist, into root's cache for moment(). Call it after
  /// prepare(). Throws: CheckpointError, NumericError.
  void prepare_moments(Communicator& communicator);

  /// Returns E[k k^T] of a layer's keys. On root, after prepare_moments().
  Tensor moment(int64_t layer) const;

  /// Returns what the editor computes with: factors, or null spaces or curvatures if it needs those. On root, after
  /// prepare(). It must not outlive this.
  LayerStatistics algebra() const;

  /// Returns a key of everything that the editor's statistics depend on. On root, after prepare().
  std::string content_key() const;

  /// Returns the report, after prepare(). It is empty on ranks other than root.
  StatisticsReport report() const;

 private:
  StatisticsReport report_projections() const;
  StatisticsText open_text(const CausalLM& model, const std::string& content_hash) const;
  std::shared_ptr<MomentSource> open_moments(const CausalLM& model, const StatisticsText& text, MomentSide side) const;
  std::shared_ptr<MomentSource> with_entities(const CausalLM& model, std::shared_ptr<MomentSource> text) const;
  StatisticsText entity_text() const;
  std::shared_ptr<StatisticsStore> open_store(const CausalLM& model, StatisticsText text, MomentSide side) const;

  const ResolvedJob& job_;
  const ModelFiles& files_;
  bool is_root_;
  std::vector<int64_t> layers_;
  EditorNeeds needs_;                                       // of the job's editor
  std::shared_ptr<const CorpusTokens> corpus_;              // of kCorpus; empty but on root
  SelfCorpusPlan plan_;                                     // of kSelf
  CorpusTokens entities_;                                   // empty but on root, and if the editor needs none
  std::shared_ptr<ImportedStatistics> imported_;            // of kImport
  std::shared_ptr<ImportedStatistics> imported_gradients_;  // of kImport, where the editor needs them
  std::optional<ImportedNullSpaces> projections_;           // of kImportedNullSpace: there is nothing to prepare
  std::shared_ptr<WeightHashes> hashes_ = std::make_shared<WeightHashes>();  // of the checkpoint, for all cache keys
  const Placement* placement_ = nullptr;                                     // after prepare()
  std::shared_ptr<KeptMatrices> kept_;
  std::shared_ptr<MomentSource> moments_;
  std::unique_ptr<DerivedStore> derived_;
  std::shared_ptr<MomentSource> gradients_;  // where the editor needs curvature
  std::unique_ptr<SpectrumStore> bends_;     // beside derived_, which then has the keys' spectra
};

}  // namespace lancet
