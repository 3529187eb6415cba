// Small random models of gpt-oss whose experts lie in MXFP4.
#pragma once

#include "tiny_model.h"

namespace lancet::testing {

/// A model of so many layers, and the same with its experts unpacked.
struct Mxfp4Twins {
  TinyModel packed, plain;
};
Mxfp4Twins mxfp4_twins(int64_t n_layers);

}  // namespace lancet::testing
