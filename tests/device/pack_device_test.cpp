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

TEST(PackOnDevices, TakesTheMemoryThatIsSaidAndHardlyWaits) {
  set_fake_device_count(kMaxFakeDevices);
  std::vector<StoredMatrix> formats = one_of_each_format(768, 512);
  formats.push_back(stored_nf4(768, 510, true));
  for (const StoredMatrix& stored : formats) {
    SCOPED_TRACE(stored.format);
    const int64_t columns = stored.spec.columns, of_weight = 768 * columns;
    const Tensor importance = moments(columns).to(fake(4)), weight = (numbers({768, columns}, 6) * 0.02).to(fake(4));
    const std::vector<Tensor> before = stored.parts_on(fake(4));
    for (const Tensor& of : {Tensor(), importance}) {
      const int64_t live = fake_bytes_live(4);
      const FakeWork work = fake_work();
      reset_fake_peaks();
      repack(weight, stored.spec, before, of, {.scales = ScaleChoice::kLeastError});
      EXPECT_LE(fake_bytes_peak(4) - live, 30 * of_weight + (of.defined() ? 16 * columns * columns : 0));
      EXPECT_EQ(fake_bytes_live(4), live);
      EXPECT_LE((fake_work() - work).reads, 8);
    }
  }
}

}  // namespace
}  // namespace lancet::testing
