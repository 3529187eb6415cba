#include "codecs.h"

#include <algorithm>
#include <stdexcept>

#include "lancet/core/strings.h"

namespace lancet {

const MatrixCodec& codec_of(MatrixPacking packing) {
  const auto at =
      std::ranges::find_if(kMatrixCodecs, [&](const MatrixCodec* codec) { return codec->packing == packing; });
  if (at == std::end(kMatrixCodecs))
    throw std::logic_error(cat("packing ", static_cast<int>(packing), " is no row of kMatrixCodecs"));
  return **at;
}

}  // namespace lancet
