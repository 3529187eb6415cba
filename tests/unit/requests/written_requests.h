// Files of requests that tests write, and what is said of those that are refused.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "lancet/requests/request.h"
#include "support/core_support.h"
#include "support/temp_dir.h"

namespace lancet::testing {

inline RequestFile load(const std::filesystem::path& path, const std::string& format = "auto",
                        OnBadRecord on_bad_record = OnBadRecord::kError) {
  RequestFileOptions options;
  options.format = format;
  options.on_bad_record = on_bad_record;
  return load_request_file(path, options);
}

class WrittenRequests : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  /// The message without the folder before the file's name.
  std::string refusal(const std::string& text, const std::string& format = "auto",
                      const std::string& name = "r.json") const {
    return without_folder(config_error([&] { load(write(name, text), format); }));
  }
  std::string without_folder(std::string message) const {
    const std::string folder = dir_.path().string() + "/";
    for (size_t at = 0; (at = message.find(folder, at)) != std::string::npos;) message.erase(at, folder.size());
    return message;
  }

  TempDir dir_;
};

}  // namespace lancet::testing
