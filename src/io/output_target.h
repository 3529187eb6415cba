// Place that an output goes to.
#pragma once

#include <filesystem>

namespace lancet {

/// Absolute, without "." and "..", without a trailing slash; a symbolic link to a folder is followed, so that what it
/// points to is replaced and not the link. Throws: ConfigError for a path without a name.
std::filesystem::path resolve_target(const std::filesystem::path& target);

}  // namespace lancet
