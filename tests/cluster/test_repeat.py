"""Work of lost workers is done again; where it cannot be, the sentence names the worker, the cause and what to do."""

from __future__ import annotations

import pytest
from in_process import InProcess

from ringleader.errors import ClusterError, RunWarning, WorkerLost
from ringleader.runtime.workers import repeat

LOST = "worker 1 (process 7) is gone: it has not answered for 60 seconds (on host)"


class NoRoom(InProcess):
    """Cannot start workers a second time."""

    def restart(self) -> None:
        super().restart()
        if self.restarts:
            raise ClusterError("no node of the cluster has 1 processor for a worker")


def lose() -> None:
    raise WorkerLost(LOST)


def test_workers_that_cannot_be_replaced_are_named_with_the_cause() -> None:
    with pytest.warns(RunWarning, match="is gone"), pytest.raises(ClusterError) as stopped:
        repeat(NoRoom(2), lose, lambda: None, "do sweep 3", "sweep 3 was tried")
    assert stopped.value.message == (
        f"{LOST}; no new workers: no node of the cluster has 1 processor for a worker; "
        "the progress so far is in the checkpoint, continue with --resume"
    )


def test_work_is_given_up_after_three_attempts() -> None:
    workers = InProcess(2)
    with pytest.warns(RunWarning, match="new workers do sweep 3 again"), pytest.raises(WorkerLost) as stopped:
        repeat(workers, lose, lambda: None, "do sweep 3", "sweep 3 was tried")
    assert stopped.value.message.startswith(f"{LOST}; sweep 3 was tried 3 times; ")
    assert workers.restarts == 2
