// A rank that has some layers of a model and computes them at rank 0's word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/rank_links.h"

namespace lancet {

struct LayerService {
  std::vector<DeviceBudget> devices;            ///< this rank's
  std::vector<std::string> ignore_config_keys;  ///< keys that rank 0 ignores too
};

/// Loads, runs and gives what LayerPeers asks for, until rank 0 says that the work is over. Returns what it says with
/// that. Throws: what fails here, after rank 0 has been told that something did; CollectiveError when rank 0 is gone.
int64_t serve_layers(Communicator& ranks, const LayerService& service);

/// Ends serve_layers() on all ranks that are still there, where it returns `code`. On rank 0.
void end_service(RankLinks& links, int64_t code);

}  // namespace lancet
