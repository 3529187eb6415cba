// Graphs of steps without CUDA, on the host and on fake devices. A capture runs the function once, notes every
// operation that it calls, and gives outputs of NaN. A replay runs the function again, writes into those outputs, and
// throws std::logic_error where a graph of CUDA's would have done something else or cannot be:
// * the function sends something to the device, or reads from it;
// * it writes to memory that it did not make;
// * it calls other operations than at the capture, or gives them other numbers of the host, which a graph keeps;
// * it takes memory that is not what it took at the capture, which a graph would still take, or which is gone.
// On fake devices it all runs on a stream of its own, as CUDA's graphs do.
// What the host does with a tensor's memory without an operation of torch's is not seen.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/runtime/step_graph.h"

namespace lancet::testing {

class EmulatedGraphs : public GraphMaker {
 public:
  bool serves(at::Device) const override { return true; }
  std::unique_ptr<StepGraphs> begin(at::Device device) override;

  /// The next captures end, after the function's last operation, with torch's out-of-memory error.
  void fail_captures(int64_t count) { failing_ = count; }

  /// What is handed over from now on is not recorded on the stream that takes it.
  void forget_streams() { forgets_streams_ = true; }

  int64_t batches() const { return batches_; }  ///< StepGraphs that began
  int64_t captures() const { return captures_; }
  int64_t replays() const { return replays_; }
  int64_t live() const { return live_; }  ///< graphs
  int64_t handed_over() const { return handed_over_; }

 private:
  friend class EmulatedStepGraphs;
  friend class EmulatedStepGraph;

  int64_t failing_ = 0;
  bool forgets_streams_ = false;
  int64_t batches_ = 0, captures_ = 0, replays_ = 0, live_ = 0, handed_over_ = 0;
};

}  // namespace lancet::testing
