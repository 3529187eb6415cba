#pragma once

namespace lancet {

/// The program's version, which is the version of the CMake project.
inline constexpr const char* kVersion = LANCET_VERSION;

}  // namespace lancet
