#pragma once

namespace lancet {

/// The program's version, which is the version of the CMake project.
extern const char* const kVersion;

}  // namespace lancet
