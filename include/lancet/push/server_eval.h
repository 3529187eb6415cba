// `lancet eval --server`: an evaluation's questions, put to a server of another program. docs/push.md.
#pragma once

#include <string>

#include "lancet/push/inference_server.h"
#include "lancet/studies/eval_job.h"

namespace lancet {

struct ServerToMeasure {
  ServerAccess access = {};
  std::string kind = "auto";  ///< one of server_kinds()
  std::string adapter = {};   ///< name of an adapter; empty: as whoever names none gets it
};

/// Measures what a server answers to the same token ids, by the metrics that need no weights. job.model: its tokenizer
/// and its config.json; weights are not read. Throws: ConfigError where no metric of the job's is left; ServerError.
EvalReport run_server_eval_job(const JobConfig& job, const ServerToMeasure& server);

}  // namespace lancet
