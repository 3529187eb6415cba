// Decides which layers go to which device, from counts, before anything is loaded. If a job does not fit, it is refused
// with a list of remedies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/job_setup/resolved_job.h"
#include "lancet/plan/memory_estimate.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

struct JobPlan {
  Placement placement;
  std::vector<StageEstimate> stages;
  /// The host's memory for solves, or for what is kept of them, if no stage is on the host. It has no layer.
  std::optional<StageEstimate> host = {};
  int64_t value_requests = 0;     ///< number of requests in one batch of value optimisation; 0: no values are optimised
  std::vector<std::string> idle;  ///< devices that hold no layer

  bool fits() const;
  /// Returns the stages, followed by `host`.
  std::vector<StageEstimate> parts() const;
  /// Returns how many bytes each device may use to keep the matrices that solves read.
  KeptMatrices::Room kept_room() const;
};

/// Chooses the plan. Layers are assigned to the devices in their order. If there are other devices, the host only gets
/// the layers that do not fit on them; the others are filled evenly, by memory or by work and speed. If the choice says
/// so and the first device is large enough, it gets all layers. Solves run where `work` says. With kAuto they run with
/// their layers, or on the host if that leaves fewer layers there or makes the job fit. A pure function. The plan may
/// not fit. Throws: PlacementError when `work` asks for graphs and the split makes them impossible.
JobPlan choose_plan(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// Chooses a plan that fits. Throws: PlacementError when the job does not fit, with every device's numbers and the
/// remedies that would work.
JobPlan plan_job(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// Returns the message of plan_job() for a job that does not fit. Every remedy in it has been tried.
std::string refusal_text(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance);

/// The texts of a job, from which its work is counted. Without a tokenizer, lengths are assumed, and `assumptions`
/// lists them.
struct WorkTexts {
  const Tokenizer* tokenizer = nullptr;
  std::span<const EditRequest> requests = {};
  EvaluationSize evaluation = {};
  std::optional<int64_t> n_requests = {};  ///< number of requests if the requests themselves are not known yet
};

/// Returns the work of an edit job. `config` has the job's run.dtype. It is not known yet whether statistics are
/// cached, so the pass over text is counted.
Workload edit_work(const ResolvedJob& job, const ModelConfig& config, const WorkTexts& texts,
                   std::vector<std::string>& assumptions);
/// Returns the work for the case that statistics are cached, so that no text is written or read for them.
Workload without_text(Workload work);
/// Returns which weights the job's model keeps quantised.
QuantiseRule quantise_rule(const ResolvedJob& job, const ModelConfig& config);
/// Returns the number of keys of earlier batches that the job's last solve uses.
int64_t history_keys(const ResolvedJob& job, int64_t n_requests);
/// Returns work that is at least as large as each of the two, for jobs on the same requests.
Workload united(const Workload& one, const Workload& other);
Workload statistics_work(const ResolvedJob& job, const ModelConfig& config);
Workload evaluation_work(const RunOptions& run, const ModelConfig& config, const EvaluationSize& evaluation);

/// Returns the work that `lancet plan` assumes without a job: MEMIT of 100 requests at layers an eighth of the way up,
/// statistics of 1,000,000 tokens, all metrics.
Workload typical_work(const RunOptions& run, const ModelConfig& config, std::vector<std::string>& assumptions);

}  // namespace lancet
