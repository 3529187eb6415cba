#include "lancet/checkpoint/saved_tensor.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "safetensors_format.h"
#include "tensor_pickle.h"

namespace lancet {
namespace {

constexpr ZipKind kSaved{"the file is truncated or damaged, or not of torch.save (PyTorch 1.6 or newer): save it again",
                         "save one tensor: torch.save(tensor.contiguous(), path)"};
/// A tensor's takes some hundred bytes.
constexpr uint64_t kLargestPickle = 100'000;

constexpr std::array<std::pair<std::string_view, DType>, 10> kStorageTypes{{{"FloatStorage", DType::kF32},
                                                                            {"DoubleStorage", DType::kF64},
                                                                            {"HalfStorage", DType::kF16},
                                                                            {"BFloat16Storage", DType::kBF16},
                                                                            {"LongStorage", DType::kI64},
                                                                            {"IntStorage", DType::kI32},
                                                                            {"ShortStorage", DType::kI16},
                                                                            {"CharStorage", DType::kI8},
                                                                            {"ByteStorage", DType::kU8},
                                                                            {"BoolStorage", DType::kBool}}};

/// All of a small member.
std::string read_member(const MappedFile& file, const ZipMember& member, const ZipPlace& place) {
  if (member.size_bytes > kLargestPickle)
    place.fail(cat("at most ", kLargestPickle, " bytes for one tensor"), cat(member.size_bytes), kSaved.rewrite);
  std::string text(member.size_bytes, '\0');
  ZipMemberStream stream(file, member, place);
  stream.read(std::as_writable_bytes(std::span(text)));
  stream.finish();
  return text;
}

DType storage_dtype(const TensorPickle& pickle, const ZipPlace& place) {
  const auto row = std::ranges::find(kStorageTypes, std::string_view(pickle.storage_type),
                                     &std::pair<std::string_view, DType>::first);
  if (row == kStorageTypes.end())
    place.fail("numbers of a type that PyTorch stores", cat("'", printable(pickle.storage_type), "'"), kSaved.rewrite);
  return row->second;
}

/// Row-major, without gaps. Where there is one entry its stride means nothing.
bool is_contiguous(const TensorPickle& pickle) {
  if (pickle.sizes.size() != pickle.strides.size()) return false;
  int64_t expected = 1;  // cannot overflow: the product of the sizes does not
  for (size_t i = pickle.sizes.size(); i-- > 0;) {
    if (pickle.sizes[i] != 1 && pickle.strides[i] != expected) return false;
    expected *= std::max<int64_t>(pickle.sizes[i], 1);
  }
  return true;
}

/// Bytes of the tensor before which there are `begin` in the record. All of it lies in the record.
void check_extents(const TensorPickle& pickle, DType dtype, const ZipMember& record, const ZipPlace& place,
                   uint64_t& begin) {
  const std::optional<uint64_t> size = stored_bytes(dtype, pickle.sizes);
  if (!size) place.fail("a shape whose size in bytes fits in 63 bits", shape_text(pickle.sizes), kSaved.rewrite);
  if (!is_contiguous(pickle))
    place.fail("numbers side by side, row by row",
               cat("strides ", shape_text(pickle.strides), " of shape ", shape_text(pickle.sizes)), kSaved.rewrite);
  const std::optional<uint64_t> in_storage = stored_bytes(dtype, std::array{pickle.storage_numel}),
                                in_front = stored_bytes(dtype, std::array{pickle.offset});
  if (record.deflated || in_storage != record.size_bytes)
    place.fail(cat("a record of ", pickle.storage_numel, " numbers of type ", dtype_name(dtype)),
               cat(record.size_bytes, record.deflated ? " packed" : "", " bytes"));
  if (!in_front || *in_front > *in_storage || *size > *in_storage - *in_front)
    place.fail(cat("a tensor within the record's ", *in_storage, " bytes"),
               cat(*size, " bytes from number ", pickle.offset));
  begin = *in_front;
}

}  // namespace

struct SavedTensor::Record {
  ZipMember member;
};

SavedTensor SavedTensor::open(const std::filesystem::path& path) {
  SavedTensor tensor;
  tensor.file_ = MappedFile::open(path);
  const MappedFile& file = *tensor.file_;
  const std::vector<ZipMember> members = read_zip_members(file, kSaved);
  const ZipPlace whole{path, kSaved};
  const auto find = [&](const std::string& name) { return std::ranges::find(members, name, &ZipMember::name); };
  // every member lies in one folder, whose name is the file's
  const std::string folder = members.empty() ? "" : members.front().name.substr(0, members.front().name.find('/') + 1);
  const auto pickled = find(folder + "data.pkl"), order = find(folder + "byteorder");
  if (pickled == members.end()) whole.fail("a member data.pkl", "none");
  if (order != members.end() && read_member(file, *order, whole) != "little")
    whole.fail("little endian numbers", "others", kSaved.rewrite);
  const ZipPlace place{path, kSaved, "data.pkl"};
  const TensorPickle pickle = parse_tensor_pickle(read_member(file, *pickled, place), place);
  const auto record = find(cat(folder, "data/", pickle.storage_key));
  if (record == members.end()) place.fail(cat("a record data/", printable(pickle.storage_key)), "none", kSaved.damaged);
  tensor.dtype_ = storage_dtype(pickle, place);
  check_extents(pickle, tensor.dtype_, *record, place, tensor.begin_);
  tensor.begin_ += record->begin;
  tensor.shape_ = pickle.sizes;
  tensor.record_ = std::make_shared<const Record>(Record{*record});
  return tensor;
}

TensorView SavedTensor::part(int64_t i) const {
  const std::vector<int64_t> shape(shape_.begin() + 1, shape_.end());
  const uint64_t size = *stored_bytes(dtype_, shape);
  return {dtype_, shape, file_->bytes().subspan(begin_ + static_cast<uint64_t>(i) * size, size), file_};
}

void SavedTensor::check_bytes() const {
  check_stored_bytes(*file_, record_->member, {file_->path(), kSaved, cat("record ", printable(record_->member.name))});
}

}  // namespace lancet
