// Which layers lie on which device, decided from counts before anything is loaded; what does not fit is refused with
// what would help.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/plan/memory_estimate.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

struct JobPlan {
  Placement placement;
  std::vector<StageEstimate> stages;
  /// What solves take on the host, or what is kept there of them, where no stage is: without a layer.
  std::optional<StageEstimate> host = {};
  int64_t value_requests = 0;     ///< requests of one batch of value optimisation; 0: none is run
  std::vector<std::string> idle;  ///< devices that hold no layer

  bool fits() const;
  /// The stages, and after them `host`.
  std::vector<StageEstimate> parts() const;
  /// What may be kept on each device of the matrices that solves read.
  KeptMatrices::Room kept_room() const;
};

/// Layers go to the devices in their order. The host, beside other devices, holds what those cannot; the others are
/// filled evenly, by memory or by work and speed. The first device alone where the choice says so and it suffices.
/// Solves lie where the work says; kAuto: with their layers, or on the host where that puts fewer layers there, or
/// makes the job fit. Pure. The plan may not fit. Throws: PlacementError when the work asks for graphs that the split
/// leaves no place for.
JobPlan choose_plan(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// Chooses a plan that fits. Throws: PlacementError with every device's numbers, and the remedies that would work, when
/// the job does not fit.
JobPlan plan_job(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// What plan_job throws for a job that does not fit: every remedy in it was tried.
std::string refusal_text(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// What a job's texts say about its work. Without a tokenizer lengths are assumed, and `assumptions` says which.
struct WorkTexts {
  const Tokenizer* tokenizer = nullptr;
  std::span<const EditRequest> requests = {};
  EvaluationSize evaluation = {};
  std::optional<int64_t> n_requests = {};  ///< number, where the requests themselves are not known yet
};

/// `config` with the job's run.dtype. Whether statistics are in the cache is not known yet: the pass is counted.
Workload edit_work(const JobConfig& job, const ModelConfig& config, const WorkTexts& texts,
                   std::vector<std::string>& assumptions);
/// Returns the work with statistics from the cache: no text is written or read for them.
Workload without_text(Workload work);
/// Which weights the job's model keeps quantised.
QuantiseRule quantise_rule(const JobConfig& job, const ModelConfig& config);
/// Keys of earlier batches that the job's last solve sees.
int64_t history_keys(const JobConfig& job, int64_t n_requests);
/// Work that takes at least what each of the two takes, of jobs on the same requests.
Workload united(const Workload& one, const Workload& other);
Workload statistics_work(const JobConfig& job, const ModelConfig& config);
Workload evaluation_work(const RunOptions& run, const ModelConfig& config, const EvaluationSize& evaluation);

/// What lancet plan looks at without a job: MEMIT of 100 requests at layers an eighth deep, statistics of 1,000,000
/// tokens, all metrics.
Workload typical_work(const RunOptions& run, const ModelConfig& config, std::vector<std::string>& assumptions);

}  // namespace lancet
