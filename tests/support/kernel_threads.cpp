// Tests of kernels, and MEMIT's whole edits beside the golden values, run with as many threads as there are processors,
// whatever OMP_NUM_THREADS says: of the others, on small tensors, waking a second thread takes a third of the time.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string_view>
#include <thread>

namespace lancet::testing {
namespace {

class KernelThreads final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    usual_ = at::get_num_threads();
    for (const std::string_view of_many : {"/unit/kernels/", "/golden/memit_golden_test.cpp"})
      if (std::string_view(test.file()).find(of_many) != std::string_view::npos)
        at::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
  }
  void OnTestEnd(const ::testing::TestInfo&) override { at::set_num_threads(usual_); }

  int usual_ = 1;
};

[[maybe_unused]] const bool kIsHeard = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new KernelThreads);  // which owns it
  return true;
}();

}  // namespace
}  // namespace lancet::testing
