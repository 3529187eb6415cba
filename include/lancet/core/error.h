// The errors that lancet throws. The library throws; only the command line turns them into exit codes.
// A message says where (path, tensor, key), what was expected, what came, and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace lancet {

/// What the process ends with. 70 is EX_SOFTWARE of sysexits.h: a defect in lancet, not in the input.
enum class ExitCode : int {
  kOk = 0,
  kConfig = 2,
  kCheckpoint = 3,
  kPlacement = 4,
  kNumeric = 5,
  kCollective = 6,
  kCancelled = 130,  ///< what the shell says of a program that Ctrl-C ended
  kInternal = 70
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Job files, command lines, request files: what the user wrote.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kConfig, message) {}
};

/// Model folders: config.json, safetensors, and the output folder they are exported to.
class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

class TokenizerError : public Error {
 public:
  explicit TokenizerError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

/// Devices and memory.
class PlacementError : public Error {
 public:
  explicit PlacementError(const std::string& message) : Error(ExitCode::kPlacement, message) {}
};

/// Algebra that has no answer (a matrix that is not definite), and `accept:` thresholds that were not met.
class NumericError : public Error {
 public:
  explicit NumericError(const std::string& message) : Error(ExitCode::kNumeric, message) {}
};

/// Whoever asked for the work ended it: Reporter::cancel().
class Cancelled : public Error {
 public:
  Cancelled() : Error(ExitCode::kCancelled, "cancelled") {}
};

/// Another rank failed, died or stalled: which one, on which host, in which stage, and what it said.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const std::string& message) : Error(ExitCode::kCollective, message) {}
};

}  // namespace lancet
