"""deltas.py OUTPUT REFERENCE --most NMSE: how far the changes of one edit are from those of another, weight by weight.

Both are outputs of lancet edit. Each change of a weight in their edits/changes/ is `left` [out, r] times `right` [r, in]. Prints
JSON; exit code 1 when a weight is farther than --most. Needs nothing but Python: ||A - B||^2 = <A, A> - 2 <A, B> + <B, B>, and <L R, M S> = <L^T M, R S^T>.
"""
import argparse
import array
import json
import operator
import pathlib
import struct
import sys

TYPES = {"F32": "f", "F64": "d"}
ROUNDING = 1e-13  # what is left of equal changes in this sum


def read_safetensors(path):
    """name -> rows of numbers."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        if info["dtype"] not in TYPES or len(info["shape"]) != 2:
            raise ValueError(f"{path}: {name}: expected a matrix of F32 or F64, got {info['dtype']} {info['shape']}")
        numbers = array.array(TYPES[info["dtype"]])
        numbers.frombytes(data[slice(*info["data_offsets"])])
        rows, columns = info["shape"]
        tensors[name] = [numbers[i * columns : (i + 1) * columns] for i in range(rows)]
    return tensors


def changes(output):
    """weight -> (columns of left, rows of right), of all its changes."""
    found = {}
    for path in sorted(pathlib.Path(output, "edits", "changes").glob("*.safetensors")):
        tensors = read_safetensors(path)
        for name, rows in tensors.items():
            change, _, part = name.rpartition("/")
            if part == "left":
                columns, its = found.setdefault(change.partition("/")[0], ([], []))
                columns += zip(*rows)
                its += tensors[change + "/right"]
            elif part != "right":
                raise ValueError(f"{path}: {name}: expected the factors of a change, /left and /right")
    return found


def dot(a, b):
    return sum(map(operator.mul, a, b))


def inner(a, b):
    return sum(dot(left, other) * dot(right, its) for left, right in zip(*a) for other, its in zip(*b))


def nmse(ours, reference):
    whole = inner(reference, reference)
    if whole == 0:
        raise ValueError("the reference changes nothing")
    return max((inner(ours, ours) - 2 * inner(ours, reference) + whole) / whole, 0.0)


def compare(output, reference):
    ours, theirs = changes(output), changes(reference)
    if ours.keys() != theirs.keys() or not ours:
        raise ValueError(f"other weights: {sorted(ours)} and {sorted(theirs)}")
    return {weight: nmse(ours[weight], theirs[weight]) for weight in sorted(ours)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("reference")
    parser.add_argument("--most", type=float, required=True)
    arguments = parser.parse_args()
    found = compare(arguments.output, arguments.reference)
    worst = max(found.values())
    print(json.dumps({"nmse": found, "worst": worst, "most": arguments.most}))
    return 0 if worst <= max(arguments.most, ROUNDING) else 1


if __name__ == "__main__":
    sys.exit(main())
