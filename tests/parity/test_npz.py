"""lancet's reader of .npz files against numpy's writers: names, types, shapes and every byte.

Runs <LANCET_BUILD>/tests/npz_dump on files of numpy.savez and numpy.savez_compressed.
"""
import io
import json
import os
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
BINARY = Path(os.environ.get("LANCET_BUILD", ROOT / "build")) / "tests" / "npz_dump"
DTYPES = {"<f4": "F32", "<f8": "F64", "<i4": "I32", "<i8": "I64"}
SHAPES = [(), (0,), (1,), (7,), (3, 5), (0, 4), (4, 0, 2), (2, 3, 4), (1, 1, 1, 1, 9), (300, 200)]
WRITERS = [numpy.savez, numpy.savez_compressed]
# How memit stores None: a NaN of these bits.
NONE = numpy.array(struct.unpack(">d", struct.pack(">Q", 0xFFF8000000000002))[0], dtype=numpy.float64)


def dump(path):
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is absent")
    return json.loads(subprocess.run([BINARY, path], capture_output=True, text=True, check=True).stdout)


def expect_equal(answer, arrays):
    assert set(answer) == set(arrays)
    for name, array in arrays.items():
        array = numpy.asarray(array)
        got = answer[name]
        assert (got["descr"], got["shape"]) == (array.dtype.str, list(array.shape)), name
        if array.dtype.str not in DTYPES or got["fortran_order"]:
            assert "crc32" not in got
            continue
        assert got["dtype"] == DTYPES[array.dtype.str]
        assert got["crc32"] == zlib.crc32(array.tobytes()), name
        total = float(array.astype(numpy.float64).sum())
        if numpy.isfinite(total):
            assert got["sum"] == pytest.approx(total, rel=1e-10, abs=1e-10), name
        else:
            assert got["sum"] is None


@pytest.mark.parametrize("save", WRITERS)
def test_arrays_of_every_type_and_shape_have_numpys_bytes(save, tmp_path):
    print("seed 20261121")
    random = numpy.random.default_rng(20261121)
    arrays = {f"{dtype[1:]}.{i}": numpy.asarray(random.normal(size=shape) * 1000).astype(dtype)
              for dtype in DTYPES for i, shape in enumerate(SHAPES)}
    save(tmp_path / "a.npz", **arrays)
    expect_equal(dump(tmp_path / "a.npz"), arrays)


@pytest.mark.parametrize("save", WRITERS)
def test_files_as_memit_writes_them(save, tmp_path):
    keys = numpy.random.default_rng(1).normal(size=(50, 16)).astype(numpy.float32)
    arrays = {"mom2.constructor": "util.runningstats.SecondMoment()", "mom2.count": 50, "mom2.mom2": keys.T @ keys,
              "sample_size": NONE, "ünï": numpy.array([numpy.nan, numpy.inf, -0.0])}
    save(tmp_path / "a.npz", **arrays)
    expect_equal(dump(tmp_path / "a.npz"), arrays)


def test_other_types_and_orders_are_listed_but_not_read(tmp_path):
    arrays = {"big": numpy.arange(3, dtype=">f4"), "half": numpy.zeros(3, dtype="<f2"), "bool": numpy.array([True]),
              "fortran": numpy.asfortranarray(numpy.ones((2, 3))), "object": numpy.array([None], dtype=object)}
    numpy.savez(tmp_path / "a.npz", **arrays)
    answer = dump(tmp_path / "a.npz")
    expect_equal(answer, arrays)
    assert answer["fortran"]["fortran_order"]


def test_versions_of_the_npy_format(tmp_path):
    arrays = {f"v{major}": numpy.arange(major * 3, dtype="<i4") for major in (1, 2, 3)}
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for major, array in zip((1, 2, 3), arrays.values()):
            out = io.BytesIO()
            numpy.lib.format.write_array(out, array, version=(major, 0))
            file.writestr(f"v{major}.npy", out.getvalue())
    expect_equal(dump(tmp_path / "a.npz"), arrays)


def test_a_stream_that_cannot_seek_leaves_sizes_after_the_data(tmp_path):
    class Pipe(io.RawIOBase):
        def __init__(self, path):
            self.file = open(path, "wb")

        def writable(self):
            return True

        def write(self, data):
            return self.file.write(data)

        def flush(self):
            self.file.flush()

    arrays = {"a": numpy.arange(12.0).reshape(3, 4), "b": numpy.array(5)}
    pipe = Pipe(tmp_path / "a.npz")
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, array)
    pipe.flush()
    expect_equal(dump(tmp_path / "a.npz"), arrays)


def test_a_cut_file_is_refused(tmp_path):
    numpy.savez(tmp_path / "a.npz", a=numpy.arange(1000.0))
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    assert "truncated" in dump(tmp_path / "cut.npz")["error"]
