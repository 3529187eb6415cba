// The way back: from a matrix in full precision to the tensors that a file of a format has, so that readers of the
// format get the nearest numbers, or those whose errors matter least.
// Sources: GPTQ (Frantar et al. 2023, arXiv 2210.17323), algorithm 1, and QuIP (Chee et al. 2023, arXiv 2307.13304),
// theorem 6, for the same errors without an inverse; QuantEase (Behdin et al. 2023, arXiv 2309.01885) for codes that
// are chosen again. Scales, zero points and codes as the formats' own programs find them: bitsandbytes,
// backends/default/ops.py; GPTQModel, quantization/quantizer.py; compressed-tensors, quantization/utils/helpers.py
// (calculate_qparams); AutoAWQ, quantize/quantizer.py.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/quant_formats/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// What a scale is made for, of the numbers that share it.
enum class ScaleChoice {
  kLargest,    ///< the largest magnitude; with zero points, the whole range
  kLeastError  ///< that times 1, 0.98, ... 0.7, whichever leaves least squared errors, each times its H_ii
};

struct PackOptions {
  /// What is added to H's diagonal, as a part of the diagonal's mean.
  double damping = 0.01;
  /// nullopt: kLeastError with an H where numbers have 4 bits or fewer, else kLargest.
  std::optional<ScaleChoice> scales = {};
  /// How often, with an H, all codes are chosen again, each beside the errors of all others.
  int64_t sweeps = 4;
};

/// `weight` [out, in] of f32 or f64, on any device, as the tensors of `spec` that a file has, on that device: for each
/// of `spec.parts` one of the type and shape of `before`, the file's tensors as they are, on any device; records, which
/// may be undefined there, stay. PackedMatrix::assemble(spec, result).unpack(t) is what a reader gets, to the bit.
///
/// Scales and zero points are found anew and rounded to their stored type before codes are chosen; bitsandbytes' nested
/// ones keep the file's table and offset, and where all scales of a matrix of E4M3 are powers of two, so are the new
/// ones. Where all numbers that share a scale are those that the file has, scale and
/// zero point stay: packing what was unpacked changes no weight.
///
/// `importance_II` [in, in], H, symmetric and positive semi-definite, of f64 or f32. Undefined: each number goes to the
/// nearest one of its scale. Else errors of a column are made good by the columns after it, in the order of the file,
/// so that trace(E H E^T) of E = weight - result is small; then each is chosen again beside all others. Scales are
/// found when their columns' turn comes, of the columns as changed so far; in advance, of `weight`, where numbers with
/// one scale are not neighbours in a row (columns in an order of their own, blocks that do not end with rows, scales of
/// scales). Computed in f64.
///
/// Takes, until it returns, at most 30 bytes a number of the weight, and with an H 16 a number of H. Waits for the
/// device at most 8 times.
/// Throws: NumericError for weights that are not finite or beyond what scales can hold, and for an H that is not
/// positive definite with its damping; CheckpointError when `before` is damaged; std::logic_error for shapes that do
/// not belong together.
std::vector<Tensor> repack(const Tensor& weight, const PackedSpec& spec, std::span<const Tensor> before,
                           const Tensor& importance_II, const PackOptions& options = {});

/// A matrix for which no file has tensors yet.
struct NewlyPacked {
  PackedSpec spec = {};
  std::vector<Tensor> parts = {};  ///< one for each of spec.parts, records included
};

/// Packs a weight of the name `name` ("model.layers.3.mlp.down_proj.weight") as `code` says. Scales are f16 in
/// GPTQ's format, bf16 in compressed-tensors' (fp8 too, where MatrixCode::in_scale_type), else f32. GPTQ's has `g_idx`.
/// Throws: as above; CheckpointError for formats that are not made anew (bitsandbytes' 4 bits, AWQ, columns in an order
/// of their own) and matrices that do not fit one.
NewlyPacked pack(const Tensor& weight, const MatrixCode& code, const std::string& name, const Tensor& importance_II,
                 const PackOptions& options = {});

}  // namespace lancet
