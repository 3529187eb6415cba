// Graphs of steps on NVIDIA's GPUs. They are torch's, and keep their memory in a pool of their own.
#pragma once

#include "lancet/runtime/step_graph.h"

namespace lancet {

GraphMaker& cuda_graph_maker();

}  // namespace lancet
