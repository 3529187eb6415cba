#pragma once

namespace lancet {

/// Of the program; CMake's project version.
inline constexpr const char* kVersion = LANCET_VERSION;

}  // namespace lancet
