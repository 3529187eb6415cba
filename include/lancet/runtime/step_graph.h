// Work that repeats the same step: it is captured once and then launched as a whole, so that the host launches one
// graph in place of hundreds of kernels. Tests replace CUDA's graphs with an emulation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lancet/core/run_kinds.h"
#include "lancet/runtime/devices.h"

namespace lancet {

/// Computes new tensors from tensors that keep their places, all on one device. It must not copy anything to or from
/// the device, must not write to its inputs, and must have no effect except its results.
using StepFunction = std::function<std::vector<Tensor>()>;

/// The captured work of a function.
class StepGraph {
 public:
  virtual ~StepGraph() = default;

  /// Runs the work on the current values of the tensors. Nothing waits for it.
  virtual void replay() = 0;

  /// Returns the function's results. They hold the values of the last replay until another graph of the same StepGraphs
  /// is replayed.
  virtual const std::vector<Tensor>& outputs() const = 0;
};

/// The graphs of a thread's work on one device. As long as this object lives, the thread's work there runs on a stream
/// of its own. When it is made and when it is destroyed, the two streams wait for each other.
class StepGraphs {
 public:
  virtual ~StepGraphs() = default;

  /// Captures the function by calling it; no kernel runs on the device. The function must have run there before with
  /// these shapes, so that libraries are loaded. Graphs that live at the same time share memory. After any exception no
  /// capture stays open. Throws: the errors that is_out_of_memory() recognises; lancet's own errors from the function;
  /// PlacementError for all others.
  virtual std::unique_ptr<StepGraph> capture(const StepFunction& function) = 0;

  /// Hands over a tensor that was made here and will be used after this object is destroyed.
  virtual void hand_over(const Tensor& tensor) = 0;
};

class GraphMaker {
 public:
  virtual ~GraphMaker() = default;

  /// Whether it can make graphs of work on this device. It does not ask the device.
  virtual bool serves(at::Device device) const = 0;
  virtual std::unique_ptr<StepGraphs> begin(at::Device device) = 0;
};

/// Makes all graphs with `maker`, on any device that it serves, until the end of the scope.
class GraphMakerScope {
 public:
  explicit GraphMakerScope(GraphMaker& maker);
  ~GraphMakerScope();
  GraphMakerScope(const GraphMakerScope&) = delete;
  GraphMakerScope& operator=(const GraphMakerScope&) = delete;

 private:
  GraphMaker* before_;
};

/// Returns the maker of graphs: CUDA's, or that of a test.
GraphMaker& graph_maker();

/// Returns why steps through the layers from `first_layer` on, and the head, cannot be graphs; empty: they can.
std::string graph_problem(const Placement& placement, int64_t first_layer);

/// Throws: PlacementError with the text of graph_problem(), if there is one.
void check_graphs(const Placement& placement, int64_t first_layer);

}  // namespace lancet
