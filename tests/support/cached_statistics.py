"""Second moments as the cache of statistics keeps them: each row from its diagonal on."""
import numpy
from safetensors import safe_open


def read_moments(path):
    """The whole matrix, f64, and of how many tokens it is."""
    with safe_open(path, "numpy") as file:
        rows, tokens = file.get_tensor("upper_rows"), int(file.metadata()["tokens"])
    size = int((numpy.sqrt(8 * rows.size + 1) - 1) / 2)
    upper = numpy.zeros((size, size))
    upper[numpy.triu_indices(size)] = rows
    return upper + numpy.triu(upper, 1).T, tokens
