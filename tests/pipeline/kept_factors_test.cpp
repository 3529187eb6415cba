// What a session keeps of its solves' matrices: a second edit reads and uploads none of them, and has the same bits.
#include "session_jobs.h"
#include "support/fake_device.h"

namespace lancet::testing {
namespace {

constexpr int64_t kKeys = 512;
constexpr int64_t kPackedBytes = 8 * kKeys * (kKeys + 1) / 2, kMatrixBytes = 8 * kKeys * kKeys;

/// Bytes that this process has read, from wherever.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = -1;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

class KeptFactors : public Sessions {
 protected:
  CompletedJob on(const std::string& device, const std::string& editor) const {
    const std::string text =
        cat("{model: ", wide_.folder.path().string(), ", editor: ", editor,
            ", statistics: {corpus: corpus.txt, tokens: 3000, cache: cache, ridge: 1e-3}, evaluate: [efficacy], ",
            "run: {dtype: f32, seed: 3, devices: [", device, "]}}");
    return complete_job(parse_config(text, "test"), {folder_.path(), "test"}, {}, EditorChoice::kNamed);
  }

  /// Makes each matrix of the cache another file, or damages one.
  void replace_matrices() const {
    for (const fs::path& file : cached()) {
      fs::copy_file(file, folder_ / "copy", fs::copy_options::overwrite_existing);
      fs::rename(folder_ / "copy", file);
    }
  }
  void damage_a_matrix() const {
    std::fstream file(cached().front(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }

  const TinyModel wide_{{.n_layers = 3, .d_ffn = kKeys}};

 private:
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& file : fs::directory_iterator(folder_ / "cache"))
      if (const std::string name = file.path().filename().string();
          name.find(".factor-") != std::string::npos || name.find(".null-space-") != std::string::npos)
        files.push_back(file.path());
    return files;
  }
};

TEST_F(KeptFactors, OfASecondEditAreNeitherReadNorUploaded) {
  fake_devices(1);
  for (const char* device : {"cpu", "'fake:0'"})
    for (const char* editor : {kMemit, "{method: alphaedit, layers: [0, 1], ridge: 1, values: {steps: 3, lr: 0.1}}"}) {
      const std::string what = cat(device, " ", editor);
      Session session(on(device, editor), listener_);
      session.edit(some(0, 2));
      int64_t read = bytes_read(), uploaded = fake_work().uploaded_bytes;
      session.edit(some(2, 4));
      EXPECT_LT(bytes_read() - read, kPackedBytes / 2) << what;
      EXPECT_LT(fake_work().uploaded_bytes - uploaded, kMatrixBytes / 2) << what;
      const std::string kept = saved(session);
      session.undo();
      replace_matrices();
      read = bytes_read();
      session.edit(some(2, 4));
      EXPECT_GE(bytes_read() - read, kPackedBytes / 2) << what << ": other files are read";
      EXPECT_EQ(saved(session), kept) << what;
      damage_a_matrix();
      EXPECT_THROW(session.edit(some(4, 6)), CheckpointError) << what;
      fs::remove_all(folder_ / "cache");
    }
}

}  // namespace
}  // namespace lancet::testing
