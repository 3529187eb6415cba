"""How OpenMP's threads wait, as libgomp itself says it: lancet's choice, unless the user made one."""
import os
import re
import subprocess

import pytest
from conftest import LANCET

CHOICES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def spins(**chosen):
    cleared = {name: value for name, value in os.environ.items() if name not in CHOICES and not name.startswith("KMP_")}
    result = subprocess.run([LANCET, "--version"], env={**cleared, "OMP_DISPLAY_ENV": "verbose", **chosen}, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.startswith("lancet "), result.stderr
    assert result.stderr.count("OPENMP DISPLAY ENVIRONMENT BEGIN") == 1, "the libraries are initialised once"
    return int(re.search(r"GOMP_SPINCOUNT = '([0-9]+)'", result.stderr)[1])


@pytest.mark.parametrize(("chosen", "expected"), [({}, 20000), ({"GOMP_SPINCOUNT": "7"}, 7), ({"OMP_WAIT_POLICY": "passive"}, None)])
def test_threads_spin_for_as_long_as_chosen(chosen, expected):
    assert spins(**chosen) == expected or (expected is None and spins(**chosen) != 20000)
