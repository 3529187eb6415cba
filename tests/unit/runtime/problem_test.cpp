#include "lancet/runtime/problem.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <new>

#include "lancet/core/error.h"

namespace lancet {
namespace {

/// What comes of an error that `act` throws.
template <typename Act>
Problem problem_in(Act act) {
  try {
    act();
  } catch (const std::exception& error) {
    return problem_of(error);
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expect_problem(const Problem& problem, ExitCode code, const std::string& words) {
  EXPECT_EQ(problem.code, code) << problem.message;
  EXPECT_NE(problem.message.find(words), std::string::npos) << problem.message;
}

TEST(Problem, IsLancetsOwnErrorAsItIs) {
  const auto own = [](const auto& error) { return problem_in([&] { throw error; }); };
  expect_problem(own(ConfigError("could not create a primitive")), ExitCode::kConfig, "could not create a primitive");
  expect_problem(own(NumericError("not definite")), ExitCode::kNumeric, "not definite");
}

TEST(Problem, OfMemoryIsTheMachines) {
  const auto expect_memory = [](const Problem& problem) {
    expect_problem(problem, ExitCode::kPlacement, "out of memory: use a smaller editor.values.batch");
  };
  expect_memory(problem_in([] { throw std::bad_alloc(); }));
  expect_memory(problem_in([] { torch::empty({int64_t{1} << 60}, torch::kByte); }));
  expect_memory(problem_in([] { throw std::runtime_error("could not create a primitive"); }));  // oneDNN
  expect_memory(problem_in([] { TORCH_CHECK(false, "CUDA error: out of memory"); }));
  // a call of CUDA's own, as torch 2.11 reports it
  expect_memory(problem_in([] { throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 2, "of a stream"); }));
  for (const char* words :
       {"CUDA driver error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasGemmEx(...)`",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnXpotrf(...)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "NCCL error: unhandled cuda error, Failed to CUDA calloc: out of memory"})
    expect_memory(problem_in([&] { TORCH_CHECK(false, words); }));
  expect_problem(problem_in([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "of 80 GiB"); }), ExitCode::kPlacement,
                 "out of device memory: use a smaller editor.values.batch, or run.dtype: bf16. of 80 GiB");
}

TEST(Problem, OfFilesIsTheMachines) {
  expect_problem(problem_in([] { std::filesystem::create_directories("/proc/out/delta"); }), ExitCode::kCheckpoint,
                 "/proc/out");
  expect_problem(problem_in([] { static_cast<void>(std::filesystem::file_size("/absent")); }), ExitCode::kCheckpoint,
                 "/absent: No such file or directory; check");
  expect_problem(problem_in([] {
                   std::ifstream folder("/proc");
                   folder.exceptions(std::ios::badbit | std::ios::failbit);
                   std::string line;
                   std::getline(folder, line);
                 }),
                 ExitCode::kCheckpoint, "a file cannot be read or written");
}

TEST(Problem, OfThreadsIsTheMachines) {
  expect_problem(problem_in([] {
                   throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread");
                 }),
                 ExitCode::kPlacement, "ulimit -u");
}

TEST(Problem, IsADefectElse) {
  expect_problem(problem_in([] {
                   throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 700, "an illegal memory access");
                 }),
                 ExitCode::kInternal, "torch: an illegal memory access");
  expect_problem(problem_in([] { throw std::logic_error("no such weight"); }), ExitCode::kInternal, "no such weight");
  expect_problem(problem_in([] { torch::zeros({2}).reshape({3}); }), ExitCode::kInternal, "torch: ");
}

}  // namespace
}  // namespace lancet
