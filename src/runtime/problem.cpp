#include "lancet/runtime/problem.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <ios>
#include <string_view>
#include <system_error>

#include "lancet/core/strings.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

constexpr std::string_view kLessMemory = "use a smaller editor.values.batch, or run.dtype: bf16";

/// Removes the stack trace from torch's messages.
std::string words_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr ? torch->what_without_backtrace() : error.what();
}

Problem memory_problem(const std::exception& error) {
  const bool is_device = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
  const bool is_silent = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return {ExitCode::kPlacement, cat("out of ", is_device ? "device " : "", "memory: ", kLessMemory,
                                    is_silent ? "" : cat(". ", words_of(error)))};
}

Problem file_problem(const std::filesystem::filesystem_error& error) {
  return {ExitCode::kCheckpoint,
          cat(error.path1().string(), error.path2().empty() ? "" : " and ", error.path2().string(), ": ",
              error.code().message(), "; check the path, its permissions and the disk")};
}

/// Names the problem of threads, locks and streams.
Problem system_problem(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory)
    return {ExitCode::kPlacement,
            cat("the system has no more threads or memory: raise the limits (ulimit -u, ulimit -v). ", error.what())};
  if (dynamic_cast<const std::ios_base::failure*>(&error) != nullptr)
    return {ExitCode::kCheckpoint, cat("a file cannot be read or written: ", error.what(), "; check the disk")};
  return {ExitCode::kInternal, error.what()};
}

}  // namespace

Problem problem_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return {own->exit_code(), own->what()};
  if (is_out_of_memory(error)) return memory_problem(error);
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) return file_problem(*file);
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) return system_problem(*system);
  if (dynamic_cast<const c10::Error*>(&error) != nullptr) return {ExitCode::kInternal, cat("torch: ", words_of(error))};
  return {ExitCode::kInternal, error.what()};
}

}  // namespace lancet
