// `lancet eval --server`: sends an evaluation's questions to a server of another program. docs/push.md.
#pragma once

#include <string>

#include "lancet/push/inference_server.h"
#include "lancet/studies/eval_job.h"

namespace lancet {

struct ServerToMeasure {
  ServerAccess access = {};
  std::string kind = "auto";  ///< one of server_kinds()
  std::string adapter = {};   ///< name of an adapter; empty: what requests without an adapter name get
};

/// Measures a server's answers to the same token ids, with the metrics that need no weights. It reads the tokenizer and
/// config.json of job.model, but no weights. Throws: ConfigError if none of the job's metrics can be measured;
/// ServerError.
EvalReport run_server_eval_job(const JobConfig& job, const ServerToMeasure& server);

}  // namespace lancet
