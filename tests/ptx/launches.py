"""A kernel's launch with its arguments, what has to come out of it, and how near."""
from dataclasses import dataclass, field

import numpy as np

from machine import Machine
from ptx_text import PtxError

WIDE_ROUNDINGS = 16  # of sums, quotients and approximations in the type that kernels compute in


@dataclass
class Expected:
    """A result: exact numbers, the magnitude of what each is the sum of, and how often it is rounded to the stored type."""

    exact: np.ndarray
    magnitude: np.ndarray
    roundings: float
    is_wide: bool = False  # stored as kernels compute


@dataclass
class Launch:
    """Arguments in the kernel's order. Buffers are exactly as long as what is in them; results begin unwritten."""

    kind: object  # StoredType
    blocks: int
    threads: int
    shift: int = 0  # numbers by which buffers lie off a multiple of 256 bytes
    shared_bytes: int = 0
    arguments: list = field(default_factory=list)
    buffers: list = field(default_factory=list)
    expected: dict = field(default_factory=dict)
    words: str = ""

    def read(self, name, array):
        self.buffers.append((name, np.ascontiguousarray(array).tobytes(), array.itemsize, self.shift * array.itemsize))
        self.arguments.append(name)

    def write(self, name, expected):
        size = self.kind.wide.itemsize if expected.is_wide else self.kind.dtype.itemsize
        self.buffers.append((name, expected.exact.size * size, size, self.shift * size))
        self.arguments.append(name)
        self.expected[name] = expected

    def within(self, name, numbers):
        """A place in a buffer that is an argument already."""
        self.arguments.append((name, numbers * self.kind.dtype.itemsize))

    def null(self):
        self.arguments.append(bytes(8))

    def numbers(self, **values):
        """Of numpy's types, which have to be the kernel's."""
        self.arguments += [value.tobytes() for value in values.values()]

    def run(self, program):
        """Runs the kernel and holds its results against what is expected. Throws PtxError."""
        machine = Machine(program, self.blocks, self.threads, self.arguments, self.buffers, self.shared_bytes)
        machine.run()
        for name, expected in self.expected.items():
            self.compare(program.kernel.name, name, expected, machine.memory["global"].result(name))
        return machine

    def compare(self, kernel, name, expected, data):
        kind = self.kind
        if expected.is_wide:
            found, unit, least = np.frombuffer(data, kind.wide), kind.wide_unit, float(np.finfo(kind.wide).smallest_subnormal)
        else:
            found, unit, least = np.frombuffer(data, kind.dtype), kind.unit, kind.least
        found = found.astype(np.longdouble) if expected.is_wide else kind.exact(found)
        exact, magnitude = expected.exact.ravel(), expected.magnitude.ravel()
        limit = (expected.roundings * unit + (WIDE_ROUNDINGS * kind.wide_unit if expected.roundings else 0)) * magnitude
        limit = limit + (4 * least if expected.roundings else 0)
        with np.errstate(invalid="ignore"):  # an infinity less itself
            good = (np.abs(found - exact) <= limit) | (found == exact) | (np.isnan(found) & np.isnan(exact))
        if not good.all():
            i = int(np.argmin(good))
            wrong = f"{int((~good).sum())} of {good.size} are wrong"
            raise PtxError(f"{kernel}, {self.words}: {name}[{i}] is {found[i]}, expected {exact[i]} within {limit[i]}; {wrong}")
