// One method's edit of the session's requests, from its statistics to the measure behind it. Writes no output.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "earlier_output.h"
#include "edit_session.h"
#include "job_statistics.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/run/edit_job.h"
#include "stopwatch.h"

namespace lancet {

class MethodRun {
 public:
  /// What can fail before any weight is read; `job` and `session` outlive this.
  MethodRun(const JobConfig& job, EditSession& session, Communicator& ranks);

  /// What memory is counted for.
  const JobWork& work() const { return work_; }
  /// Also what comes before and behind the edit goes there.
  EditReport& report() { return report_; }
  Stopwatch& stopwatch() { return stopwatch_; }

  /// Collective: contexts and statistics, of the unedited model.
  void prepare(const CausalLM& model);

  /// Collective: the edit and the measure behind it; the transaction then holds the change. `unfinished`: where
  /// what is finished is kept until the job ends; nullopt: nowhere.
  void edit(CausalLM& model, WeightTransaction& transaction, const std::optional<std::filesystem::path>& unfinished);

  /// Behind edit(): what another job can go on with.
  const StreamState& stream() const { return stream_; }
  StreamFacts stream_facts() const { return {{job_.method, session_.base_hash}, editor_options(job_)}; }
  /// Of the earlier job that this one goes on from; on root. Null: none.
  const EarlierOutput* earlier() const { return earlier_ ? &*earlier_ : nullptr; }

 private:
  std::string model_key() const;
  std::string setting_key(WeightTransaction& transaction) const;

  const JobConfig& job_;
  const EditSession& session_;
  Communicator& ranks_;
  EditReport report_;
  Stopwatch stopwatch_{report_.stages};
  std::optional<EarlierOutput> earlier_;
  std::optional<JobStatistics> statistics_;
  JobWork work_;
  StreamState stream_;
};

}  // namespace lancet
