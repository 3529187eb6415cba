// `lancet quantise` on fake devices writes what it writes on the CPU.
#include "lancet/export/quantise_job.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;

struct Quantised {
  QuantiseReport report = {};
  std::map<std::string, Tensor> tensors = {};
};

Quantised quantise(const TinyModel& tiny, const std::vector<std::string>& devices, QuantisedFormat format) {
  const TempDir folder;
  std::string lines;
  for (const EditRequest& request : testing::some_requests(5)) lines += to_json_line(request) + "\n";
  make_folders(folder / "edits");
  write_text_file(folder / "edits" / "requests.jsonl", lines);
  QuantiseJob job;
  job.model = tiny.folder.path();
  job.edits = folder / "edits";
  job.out = folder / "out";
  job.format = format;
  job.corpus = testing::write_corpus(folder.path(), 60);
  job.tokens = 600;
  job.run.devices = devices;
  job.run.dtype = DType::kF64;
  Quantised quantised;
  quantised.report = run_quantise_job(job);
  const Checkpoint written = Checkpoint::open(job.out);
  for (const std::string& name : written.tensor_names())
    quantised.tensors[name] = to_tensor(written.view(name)).clone();
  return quantised;
}

TEST(QuantiseJob, OnDevicesEqualsTheCpus) {
  const TinyModel tiny({.n_layers = 2, .d_model = 128, .d_ffn = 256});
  testing::fake_devices(2);
  for (const QuantisedFormat format : {QuantisedFormat::kGptq, QuantisedFormat::kCompressedTensors}) {
    const Quantised cpu = quantise(tiny, {"cpu"}, format);
    const Quantised split = quantise(tiny, {"fake:0", "fake:1"}, format);
    EXPECT_EQ(cpu.report.matrices.size(), 14u);
    ASSERT_EQ(split.tensors.size(), cpu.tensors.size());
    for (const auto& [name, tensor] : cpu.tensors) EXPECT_TRUE(split.tensors.at(name).equal(tensor)) << name;
    for (size_t i = 0; i < cpu.report.matrices.size(); ++i) {
      EXPECT_LT(cpu.report.matrices[i].error, cpu.report.matrices[i].nearest_error) << cpu.report.matrices[i].name;
      EXPECT_NEAR(split.report.matrices[i].error, cpu.report.matrices[i].error, 1e-9);
    }
    for (const auto& [name, tally] : cpu.report.after->totals)
      EXPECT_EQ(split.report.after->totals.at(name).sum, tally.sum) << name;
  }
}

}  // namespace
}  // namespace lancet
