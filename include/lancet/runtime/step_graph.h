// Work that is the same step after step, captured once and then launched as a whole: the host launches one graph in
// place of hundreds of kernels. Tests put an emulation in the place of CUDA's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lancet/core/run_kinds.h"
#include "lancet/runtime/devices.h"

namespace lancet {

/// Computes new tensors from ones that stay where they are, all on one device: it sends nothing there, reads nothing,
/// writes to none of them, and leaves nothing behind but its results.
using StepFunction = std::function<std::vector<Tensor>()>;

/// A function's work.
class StepGraph {
 public:
  virtual ~StepGraph() = default;

  /// Does the work on what the tensors hold by then. Nobody waits.
  virtual void replay() = 0;

  /// The function's results. They hold those of the last replay, until another graph of the same StepGraphs is
  /// replayed.
  virtual const std::vector<Tensor>& outputs() const = 0;
};

/// Graphs of a thread's work on one device. As long as this lives, what the thread does there runs on a stream of its
/// own; before and after it streams wait for each other.
class StepGraphs {
 public:
  virtual ~StepGraphs() = default;

  /// Calls the function, which does nothing on the device: it has run there before, with these shapes, so that
  /// libraries are loaded. Graphs that live at the same time share memory. Whatever is thrown, no capture stays open.
  /// Throws: what is_out_of_memory() knows; what the function throws of lancet's own; PlacementError for all else.
  virtual std::unique_ptr<StepGraph> capture(const StepFunction& function) = 0;

  /// Hands over a tensor that was made here and is used when this is gone.
  virtual void hand_over(const Tensor& tensor) = 0;
};

class GraphMaker {
 public:
  virtual ~GraphMaker() = default;

  /// Whether graphs of work there can be made. Asks no device.
  virtual bool serves(at::Device device) const = 0;
  virtual std::unique_ptr<StepGraphs> begin(at::Device device) = 0;
};

/// Lets `maker` make all graphs, on any device that it serves, until the scope's end.
class GraphMakerScope {
 public:
  explicit GraphMakerScope(GraphMaker& maker);
  ~GraphMakerScope();
  GraphMakerScope(const GraphMakerScope&) = delete;
  GraphMakerScope& operator=(const GraphMakerScope&) = delete;

 private:
  GraphMaker* before_;
};

/// CUDA's, or a test's.
GraphMaker& graph_maker();

/// Why steps through the layers from `first_layer` on, and the head, cannot be graphs; empty: they can.
std::string graph_problem(const Placement& placement, int64_t first_layer);

/// Throws: PlacementError with that problem.
void check_graphs(const Placement& placement, int64_t first_layer);

}  // namespace lancet
