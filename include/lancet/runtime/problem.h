// What an exception means to the user.
#pragma once

#include <exception>
#include <string>

#include "lancet/core/error.h"

namespace lancet {

struct Problem {
  ExitCode code = ExitCode::kInternal;
  std::string message;
};

/// Describes an exception. lancet's own errors keep their meaning. Failed allocations, and system errors about files
/// and threads, are problems of the machine. Everything else is a bug in lancet.
Problem problem_of(const std::exception& error);

}  // namespace lancet
