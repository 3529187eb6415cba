"""The types that numbers are stored in, as kernels have them: what rounding to them does, and by how much it may change a number."""
from dataclasses import dataclass

import numpy as np

from conversions import narrowed_bf16, widened_bf16

EXACT = np.longdouble  # what oracles compute in


@dataclass(frozen=True)
class StoredType:
    name: str
    dtype: np.dtype  # of numpy's arrays; of bf16 the bits
    wide: np.dtype  # what kernels compute in
    unit: float  # the most that rounding changes a number by, relative to it
    least: float  # the smallest number above 0

    def rounded(self, numbers):
        """From any floats, as stored."""
        return narrowed_bf16(np.asarray(numbers, np.float32)) if self.name == "bf16" else np.asarray(numbers).astype(self.dtype)

    def exact(self, stored):
        return (widened_bf16(stored) if self.name == "bf16" else stored).astype(EXACT)

    def widened(self, stored):
        return (widened_bf16(stored) if self.name == "bf16" else stored).astype(self.wide)

    @property
    def wide_unit(self):
        return float(np.finfo(self.wide).eps) / 2


STORED_TYPES = {
    kind.name: kind
    for kind in (
        StoredType("bf16", np.dtype(np.uint16), np.dtype(np.float32), 2.0**-8, 2.0**-133),
        StoredType("f16", np.dtype(np.float16), np.dtype(np.float32), 2.0**-11, 2.0**-24),
        StoredType("f32", np.dtype(np.float32), np.dtype(np.float32), 2.0**-24, 2.0**-149),
        StoredType("f64", np.dtype(np.float64), np.dtype(np.float64), 2.0**-53, 2.0**-1074),
    )
}
