// What a job that is stopped has finished and leaves for the next run of the same job.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lancet/job/job_config.h"

namespace lancet {

class KeptWork {
 public:
  /// Takes the job's run to begin now. Looks at nothing yet.
  explicit KeptWork(const JobConfig& job);

  /// A clause that says where it lies, or that there is none yet. From any thread, while the job runs.
  std::string text() const;

 private:
  std::filesystem::path unfinished_;  ///< empty: a job without an output
  std::filesystem::path cache_;       ///< empty: no statistics
  std::filesystem::file_time_type begun_ = std::filesystem::file_time_type::clock::now();
};

}  // namespace lancet
