#pragma once

namespace lancet {

/// The program's version: CMake's project version.
inline constexpr const char* kVersion = LANCET_VERSION;

}  // namespace lancet
