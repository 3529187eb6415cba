// Jobs of several batches on one tiny model.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/safetensors.h"
#include "lancet/models/tensor_io.h"
#include "lancet/run/edit_job.h"
#include "support/edit_setup.h"
#include "support/interrupted.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using Json = nlohmann::json;

inline constexpr const char* kMemit =
    "{method: memit, layers: [0, 1], covariance_weight: 20, history: true, values: {steps: 3, lr: 0.1, batch: 2}, "
    "contexts: {generate: 2, length: 6}}";
inline constexpr const char* kWeight = "model.layers.1.mlp.down_proj.weight";

/// Jobs on one tiny model, of up to 8 requests.
class StreamJobs : public ::testing::Test {
 protected:
  StreamJobs() {
    std::ofstream lines(folder_ / "requests.jsonl");
    for (const EditRequest& request : some_requests(8)) lines << to_json_line(request) << "\n";
    write_corpus(folder_.path(), 300);
  }

  /// `overrides`: separated by blanks.
  JobConfig job(const std::string& output, const std::string& editor, const std::string& overrides) const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", requests: {path: requests.jsonl}, editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "schedule: {batch: 2}, output: {dir: ", output, "}, run: {dtype: f64, seed: 3}}");
    ConfigTree tree = parse_config(text, "test");
    std::istringstream each(overrides);
    for (std::string assignment; each >> assignment;) apply_override(tree, assignment);
    keep_folder(tree, folder_.path());  // `continue_from=first` lies beside the requests
    return parse_job(tree, folder_.path(), "test", JobPurpose::kEdit);
  }

  EditReport edit(const std::string& output, const std::string& overrides = "",
                  const std::string& editor = kMemit) const {
    return run_edit_job(job(output, editor, overrides), alone());
  }

  /// The job, ended by a fault as it begins to solve for the `nth` time.
  void edit_until(const std::string& output, int64_t nth_solve, const std::string& overrides = "",
                  const std::string& editor = kMemit) const;

  /// The exact change of every weight, summed.
  std::map<std::string, Tensor> changes(const std::string& output) const {
    const SafetensorsReader file = SafetensorsReader::open(folder_ / output / "state" / "changes.safetensors");
    std::map<std::string, Tensor> sums;
    for (const TensorInfo& info : file.tensors()) {
      const std::string name = info.name.substr(0, info.name.find('/'));
      if (info.name.ends_with("/right")) continue;
      Tensor change = to_tensor(file.view(info.name)).clone();
      if (info.name.ends_with("/left"))
        change = change.matmul(to_tensor(file.view(info.name.substr(0, info.name.size() - 4) + "right")));
      sums[name] = sums.contains(name) ? sums[name] + change : change;
    }
    return sums;
  }

  std::string bytes(const fs::path& file) const {
    std::ifstream stream(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  Json report(const std::string& output) const { return Json::parse(bytes(fs::path(output) / "report.json")); }

  void expect_close(const std::string& output, const std::string& expected, double bound) const {
    const auto got = changes(output), wanted = changes(expected);
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [name, change] : wanted) {
      EXPECT_GT(change.norm().item<double>(), 0.0) << name;
      EXPECT_LE((got.at(name) - change).norm().item<double>(), bound * change.norm().item<double>()) << name;
    }
  }

  TinyModel tiny_;
  TempDir folder_;
};

inline void StreamJobs::edit_until(const std::string& output, int64_t nth_solve, const std::string& overrides,
                                   const std::string& editor) const {
  Interrupted ranks("solve", nth_solve);
  EXPECT_THROW(run_edit_job(job(output, editor, overrides), ranks), std::runtime_error);
  EXPECT_FALSE(fs::exists(folder_ / output));
}

/// Changes the last number of a file, or of a JSON document.
inline void flip_a_bit(const fs::path& file) {
  std::string bytes = read_text_file(file, "test");
  const size_t at = bytes.find_last_of("0123456789");
  char& changed = bytes[file.extension() == ".json" ? at : bytes.size() - 1];
  changed = static_cast<char>(changed ^ 1);
  write_text_file(file, bytes);
}

}  // namespace lancet::testing
