// What an exception is to the user.
#pragma once

#include <exception>
#include <string>

#include "lancet/core/error.h"

namespace lancet {

struct Problem {
  ExitCode code = ExitCode::kInternal;
  std::string message;
};

/// lancet's own errors as they are; memory that could not be had is the machine's, and so is what the system says of
/// files and threads. Only what is left is a defect of lancet.
Problem problem_of(const std::exception& error);

}  // namespace lancet
