// Outputs for the tests of what is replaced and taken away.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/io/output_folder.h"

namespace lancet::testing {

inline constexpr OutputKind kKind{"edit"};
inline constexpr const char* kManifest = "lancet-manifest.json";

inline void fill(const OutputFolder& output, std::string_view text) {
  write_bytes(output.staging() / "report.json", text);
  write_bytes(output.staging() / "deep" / "er" / "file", text);
}

/// A finished output.
inline void write_output(const std::filesystem::path& target, std::string_view text = "old") {
  OutputFolder output(target, IfExists::kReplace, kKind);
  fill(output, text);
  output.commit();
}

inline std::string refusal(const std::filesystem::path& target, IfExists policy) {
  return message_of<ConfigError>([&] { OutputFolder(target, policy, kKind); });
}

}  // namespace lancet::testing
