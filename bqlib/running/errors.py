"""Errors of a run."""


class ClusterError(RuntimeError):
    """No cluster could be had, or it was lost; the message says why and what to do."""


class RunError(RuntimeError):
    """The run's process could not do what was asked; the message says why."""


class RunEndedError(RunError):
    """The run's process is gone, which Snakemake's end hook tells once for all jobs."""


class OtherCodeError(RuntimeError):
    """A worker's code or libraries are not those of the run."""
