// An observer of the ranks of a job. The communicator tells it what happens, and asks it when another rank is gone.
#pragma once

#include <string>

#include "lancet/core/error.h"

namespace lancet {

class RankObserver {
 public:
  virtual ~RankObserver() = default;
  /// This rank begins the work of `stage`.
  virtual void begin_stage(const std::string& stage) = 0;
  /// From now on this rank waits for others, so it is not its fault that it makes no progress.
  virtual void begin_wait() = 0;
  virtual void end_wait() = 0;
  /// This rank's work of the stage failed, and its process will end.
  virtual void report_failure(ExitCode code, const std::string& message) = 0;
  /// Returns which rank is gone, and why, after a collective failed with `transport_error`. May wait some seconds for a
  /// report of the others.
  virtual std::string explain(const std::string& transport_error) = 0;
};

}  // namespace lancet
