// The errors that lancet throws. The library throws; only the command line turns errors into exit codes. A message says
// where the error is (path, tensor, key), what was expected, what was found, and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace lancet {

/// The exit code of the process. 70 is EX_SOFTWARE of sysexits.h: a defect in lancet, not in the input.
enum class ExitCode : int {
  kOk = 0,
  kConfig = 2,
  kCheckpoint = 3,
  kPlacement = 4,
  kNumeric = 5,
  kCollective = 6,
  kCancelled = 130,  ///< the code that a shell gives for a program that Ctrl-C ended
  kInternal = 70
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// An error in what the user wrote: a job file, a command line, a request file.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kConfig, message) {}
};

/// An error in a model folder (config.json, safetensors), or in the output folder that a model is exported to.
class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

class TokenizerError : public Error {
 public:
  explicit TokenizerError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

/// An error of devices or memory.
class PlacementError : public Error {
 public:
  explicit PlacementError(const std::string& message) : Error(ExitCode::kPlacement, message) {}
};

/// Algebra without a solution (a matrix that is not positive definite), or `accept:` thresholds that were not met.
class NumericError : public Error {
 public:
  explicit NumericError(const std::string& message) : Error(ExitCode::kNumeric, message) {}
};

/// The caller cancelled the work by Reporter::cancel().
class Cancelled : public Error {
 public:
  Cancelled() : Error(ExitCode::kCancelled, "cancelled") {}
};

/// Another rank failed, died or stalled. The message says which rank, on which host, in which stage, and its error.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const std::string& message) : Error(ExitCode::kCollective, message) {}
};

}  // namespace lancet
