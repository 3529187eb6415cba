// How torch computes where it has a choice: the same on every machine, whatever the environment says. These switches
// are torch's own and of the whole process.
#pragma once

#include <map>
#include <string>

namespace lancet {

/// What torch does where it may give up precision, or choose kernels by their speed. All off: what set_numerics() sets.
struct Numerics {
  bool tf32 = false;             ///< products of f32 matrices on GPUs with 10 bits of the mantissa
  bool reduced_sums = false;     ///< partial sums of bf16 and f16 products on GPUs kept in that type
  bool cudnn_attention = false;  ///< cuDNN's attention, which sets up a plan for every new shape: 0.4 s each

  bool operator==(const Numerics&) const = default;
};

/// Returns what torch is set to now.
Numerics numerics();

/// Returns the settings by the names that documents have for them.
std::map<std::string, bool> named(const Numerics& numerics);

/// Turns all of it off. Every CausalLM does so when it is made; programs that compute without one call it first.
void set_numerics();

}  // namespace lancet
