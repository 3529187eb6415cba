"""torch comes first: the extension module is linked to the libraries of its wheel, and finds them as torch loads them."""

try:
    import torch
except ImportError as error:
    raise ImportError("lancet needs torch, whose libraries it computes with: pip install torch==2.11.0") from error


def _check() -> None:
    """torch's C++ classes differ between versions: another one would crash instead of failing."""
    from . import _built_with

    found = torch.__version__.split("+")[0]
    if found != _built_with.TORCH:
        raise ImportError(
            f"lancet was built with torch {_built_with.TORCH}, and this is torch {found} ({torch.__file__}): "
            f"pip install torch=={_built_with.TORCH}, or build lancet again beside this torch"
        )


_check()
