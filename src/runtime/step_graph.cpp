#include "lancet/runtime/step_graph.h"

#include <atomic>

#include "cuda_graphs.h"
#include "device_text.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::atomic<GraphMaker*> scoped_maker{nullptr};

}  // namespace

GraphMakerScope::GraphMakerScope(GraphMaker& maker) : before_(scoped_maker.exchange(&maker)) {}

GraphMakerScope::~GraphMakerScope() { scoped_maker = before_; }

GraphMaker& graph_maker() {
  GraphMaker* const scoped = scoped_maker;
  return scoped != nullptr ? *scoped : cuda_graph_maker();
}

std::string graph_problem(const Placement& placement, int64_t first_layer) {
  const at::Device device = placement.head_device();
  const std::string steps = cat("steps of value optimisation take layers ", first_layer, "-",
                                placement.stages().back().end - 1, " and the head");
  if (!graph_maker().serves(device))
    return cat(steps, ", expected on a GPU, found on ", device_text(device), " (", placement.description(), ")");
  if (placement.stage_of(first_layer) + 1 != static_cast<int64_t>(placement.stages().size()))
    return cat(steps, ", expected on one GPU, found on several devices: ", placement.description());
  return "";
}

void check_graphs(const Placement& placement, int64_t first_layer) {
  if (const std::string problem = graph_problem(placement, first_layer); !problem.empty())
    throw PlacementError(cat("run.cuda_graphs: ", problem,
                             ". Set run.cuda_graphs: false, or name one GPU that holds them in run.devices"));
}

}  // namespace lancet
