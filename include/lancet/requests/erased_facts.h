// Requests that may lack a target: facts to erase, which have none of their own.
#pragma once

#include <filesystem>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/requests/request.h"

namespace lancet {

/// Reads as load_request_file(), but that a record may lack its target, which is empty then: in the formats flat,
/// counterfact and mquake. Throws: likewise.
RequestFile load_erased_facts(const std::filesystem::path& path, const RequestFileOptions& options);

/// Reads as parse_requests(), but that a record may lack its target. Throws: likewise.
std::vector<EditRequest> parse_erased_facts(const ConfigTree& list);

}  // namespace lancet
