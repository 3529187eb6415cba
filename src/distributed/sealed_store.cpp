#include "sealed_store.h"

#include <algorithm>
#include <cstring>

#include "lancet/core/strings.h"
#include "lancet/distributed/rank_session.h"

namespace lancet {

c10::intrusive_ptr<c10d::Store> SealedStore::clone() { return c10::make_intrusive<SealedStore>(store_->clone(), key_); }

void SealedStore::set(const std::string& key, const Bytes& value) { store_->set(key, sealed(key, value)); }

SealedStore::Bytes SealedStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const Bytes found =
      store_->compareSet(key, expected.empty() ? expected : sealed(key, expected), sealed(key, desired));
  return found.empty() ? found : opened(key, found);
}

SealedStore::Bytes SealedStore::get(const std::string& key) { return opened(key, store_->get(key)); }

std::vector<SealedStore::Bytes> SealedStore::multiGet(const Keys& keys) {
  std::vector<Bytes> values = store_->multiGet(keys);
  for (size_t i = 0; i < values.size(); ++i) values[i] = opened(keys[i], std::move(values[i]));
  return values;
}

/// Computes the tag of the first `length` bytes of `value`. The length of the key is included, so that key and value
/// cannot be confused.
uint64_t SealedStore::tag(const std::string& key, const Bytes& value, size_t length) const {
  return tag_of(key_,
                cat(key.size(), ":", key, std::string(value.begin(), value.begin() + static_cast<int64_t>(length))));
}

SealedStore::Bytes SealedStore::sealed(const std::string& key, const Bytes& value) const {
  const uint64_t own = tag(key, value, value.size());
  Bytes out(value.size() + sizeof(own));
  std::copy(value.begin(), value.end(), out.begin());
  std::memcpy(out.data() + value.size(), &own, sizeof(own));
  return out;
}

SealedStore::Bytes SealedStore::opened(const std::string& key, Bytes value) const {
  uint64_t found = 0;
  const bool has_tag = value.size() >= sizeof(found);
  const size_t length = has_tag ? value.size() - sizeof(found) : 0;
  if (has_tag) std::memcpy(&found, value.data() + length, sizeof(found));
  if (!has_tag || found != tag(key, value, length))
    throw ForeignValue(cat("the ranks' store holds a value under '", excerpt(key, 60),
                           "' that was not written with this job's secret: ", kSecretVariable,
                           " differs between the ranks, ",
                           "another job uses the same port, or somebody else writes there"));
  value.resize(length);
  return value;
}

}  // namespace lancet
