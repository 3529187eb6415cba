"""Errors of lancet: each says where, what was expected, what came, and what to do."""


class Error(Exception):
    """Any of lancet's errors. By itself: a defect in lancet, not in the input."""

    code: int = 70
    """What the program `lancet` would end with."""


class ConfigError(Error, ValueError):
    """Jobs, options and requests: what the user wrote."""

    code = 2


class CheckpointError(Error):
    """Model folders, and output folders that models are written to."""

    code = 3


class TokenizerError(Error):
    """The tokenizer's files."""

    code = 3


class PlacementError(Error):
    """Devices and memory."""

    code = 4


class NumericError(Error):
    """Algebra that has no answer, and thresholds of `accept` that were not met."""

    code = 5
    report: "object | None" = None
    """Of a job whose thresholds were not met: its lancet.Report."""


class CollectiveError(Error):
    """Another process of the job failed."""

    code = 6


class Cancelled(Error):
    """Somebody ended the call: cancel() or close()."""

    code = 130


class EditWarning(UserWarning):
    """What lancet warns of: passed to `warnings.warn`."""
