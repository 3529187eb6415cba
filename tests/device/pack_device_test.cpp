// Packing on devices: the host's bits, nothing left elsewhere, and no more memory than was said.
#include <gtest/gtest.h>

#include "fake_tensors.h"
#include "lancet/quant/packed_matrix.h"
#include "support/fake_device.h"
#include "support/packed_formats.h"

namespace lancet::testing {
namespace {

Tensor moments(int64_t columns) {
  const Tensor x = numbers({2 * columns, columns}, 5, at::kDouble);
  return x.t().matmul(x);
}

void expect_same(const PackedSpec& spec, const std::vector<Tensor>& there, const std::vector<Tensor>& host,
                 at::Device device) {
  ASSERT_EQ(there.size(), host.size());
  for (size_t i = 0; i < host.size(); ++i) {
    if (spec.parts[i].role == PartRole::kRecord) continue;  // stays where it was
    EXPECT_EQ(there[i].device(), device);
    EXPECT_TRUE(there[i].to(kHost).flatten().view(at::kByte).equal(host[i].flatten().view(at::kByte))) << "part " << i;
  }
}

TEST(PackOnDevices, HasTheHostsBits) {
  set_fake_device_count(kMaxFakeDevices);
  const Tensor weight = numbers({96, 192}, 3) * 0.02, importance = moments(192);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    SCOPED_TRACE(stored.format);
    for (const Tensor& of : {Tensor(), importance}) {
      const std::vector<Tensor> host = repack(weight, stored.spec, stored.parts, of);
      const Tensor of_there = of.defined() ? of.to(fake(1)) : of;
      expect_same(stored.spec, repack(weight.to(fake(1)), stored.spec, stored.parts_on(fake(1)), of_there), host,
                  fake(1));
      // the file's tensors and H may be elsewhere
      expect_same(stored.spec, repack(weight.to(fake(2)), stored.spec, stored.parts, of), host, fake(2));
    }
  }
}

TEST(PackOnDevices, PacksAnewToTheHostsBits) {
  set_fake_device_count(kMaxFakeDevices);
  const Tensor weight = numbers({64, 256}, 4), importance = moments(256);
  const MatrixCode codes[] = {
      {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 128}, .zeros = ZeroPoints::kStoredLessOne},
      {.packing = MatrixPacking::kCompressedPacked, .bits = 4, .block = {1, 128}},
      {.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}},
      {.packing = MatrixPacking::kFloat8, .block = {1, 0}}};
  for (const MatrixCode& code : codes) {
    const NewlyPacked there = pack(weight.to(fake(3)), code, "w.weight", importance.to(fake(3)));
    expect_same(there.spec, there.parts, pack(weight, code, "w.weight", importance).parts, fake(3));
  }
}

TEST(PackOnDevices, TakesTheMemoryThatIsSaidAndLeavesNone) {
  set_fake_device_count(kMaxFakeDevices);
  constexpr int64_t kRows = 768, kColumns = 512;
  const Tensor importance = moments(kColumns).to(fake(4));
  const Tensor weight = (numbers({kRows, kColumns}, 6) * 0.02).to(fake(4));
  for (const StoredMatrix& stored : one_of_each_format(kRows, kColumns)) {
    SCOPED_TRACE(stored.format);
    const std::vector<Tensor> before = stored.parts_on(fake(4));
    for (const bool is_plain : {true, false}) {
      const int64_t live = fake_bytes_live(4);
      reset_fake_peaks();
      const std::vector<Tensor> parts = repack(weight, stored.spec, before, is_plain ? Tensor() : importance);
      const int64_t peak = fake_bytes_peak(4) - live, of_weight = kRows * kColumns, of_h = kColumns * kColumns;
      std::cerr << stored.format << " " << is_plain << " " << static_cast<double>(peak) / of_weight << " less h "
                << static_cast<double>(peak - 16 * of_h) / of_weight << "\n";
      EXPECT_LE(peak, is_plain ? 20 * of_weight : 40 * of_weight + 24 * of_h);
    }
  }
}

}  // namespace
}  // namespace lancet::testing
