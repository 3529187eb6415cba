"""scikit-build-core, told where torch is: the torch that lies beside the Python which is built for takes the place of a
download of gigabytes into the build's own environment. cmake/TorchWheel.cmake looks in the same places.
It compiles as many files at once as memory holds, and says how far it is.
"""
import os
import pathlib
import re
import sysconfig

import build_jobs
import build_progress
import scikit_build_core.build as _backend
from scikit_build_core.build import *  # noqa: F403  the backend
from scikit_build_core.build import get_requires_for_build_editable as _for_editable
from scikit_build_core.build import get_requires_for_build_wheel as _for_wheel

TORCH = "2.11.0"


def _has_torch():
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        file = pathlib.Path(folder, "torch", "version.py")
        if file.exists() and re.search(rf"^__version__ *= *'{re.escape(TORCH)}(\+.*)?'$", file.read_text(), re.M):
            return True
    return False


def _compiled(make, *arguments):
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(build_jobs.jobs()))
    with build_progress.Told():
        return make(*arguments)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _compiled(_backend.build_wheel, wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _compiled(_backend.build_editable, wheel_directory, config_settings, metadata_directory)


def _named(settings):
    """-C cmake.define.LANCET_TORCH=FOLDER"""
    return any(str(key).endswith("LANCET_TORCH") for key in settings or {})


def get_requires_for_build_wheel(config_settings=None):
    more = [] if _named(config_settings) or _has_torch() else [f"torch=={TORCH}"]
    return [*_for_wheel(config_settings), *more]


def get_requires_for_build_editable(config_settings=None):
    more = [] if _named(config_settings) or _has_torch() else [f"torch=={TORCH}"]
    return [*_for_editable(config_settings), *more]
