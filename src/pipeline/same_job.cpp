#include "lancet/pipeline/same_job.h"

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"

namespace lancet {

std::vector<JobFact> job_facts(const JobConfig& job, const ModelFiles& files, std::span<const EditRequest> requests) {
  std::string lines;
  for (const EditRequest& request : requests) lines += to_json_line(request) + "\n";
  return {{"the version of lancet", std::string(kVersion)},
          {"the job", to_yaml(job.resolved)},
          {"the model's config.json", files.checkpoint.config_text()},
          {"the dtype", std::string(dtype_name(job.run.dtype.value_or(files.config.dtype)))},
          {"the requests", std::move(lines)}};
}

void check_same(Communicator& communicator, std::span<const JobFact> facts) {
  if (communicator.size() == 1) return;
  std::string own;
  communicator.run_collectively("compare", [&] {
    for (const auto& [name, value] : facts) own += ContentHash().add(value).hex();
  });
  const std::vector<std::string> all = communicator.gather(own);
  const size_t length = own.size() / facts.size();
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    for (size_t i = 0; i < facts.size(); ++i)
      if (all[rank].compare(i * length, length, all[0], i * length, length) != 0)
        throw ConfigError(cat("rank ", rank, ": ", facts[i].first,
                              ": expected the same as on rank 0, got another. Start ",
                              "every rank with the same job, model and requests"));
  }
}

std::string same_content_hash(Communicator& communicator, const Checkpoint& checkpoint) {
  std::string hash;
  communicator.run_collectively("load", [&] { hash = checkpoint.content_hash(); });
  check_same(communicator, std::vector<JobFact>{{"the model's weights", hash}});
  return hash;
}

}  // namespace lancet
