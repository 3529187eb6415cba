// What a communicator tells whoever watches the ranks of a job, and asks when a peer is gone.
#pragma once

#include <string>

#include "lancet/core/error.h"

namespace lancet {

class RankObserver {
 public:
  virtual ~RankObserver() = default;
  /// This rank begins work of `stage`.
  virtual void begin_stage(const std::string& stage) = 0;
  /// This rank waits for others from here on: that it makes no progress is no fault of its own.
  virtual void begin_wait() = 0;
  virtual void end_wait() = 0;
  /// This rank's work of the stage failed; its process will end.
  virtual void report_failure(ExitCode code, const std::string& message) = 0;
  /// Who is gone, and why, after a collective failed with `transport_error`. May wait some seconds for others to say.
  virtual std::string explain(const std::string& transport_error) = 0;
};

}  // namespace lancet
