"""The parts of a pool on Dask workers: they are made, asked, and made again where they are lost."""

import time
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from distributed import CancelledError, KilledWorker

from bqlib.sharded.drawing import block_count
from bqlib.sharded.shards import GROUP

LOOK_SECONDS = 2  # between two looks whether a worker that does not answer is still there
FIRST_SECONDS = 30  # for the first worker to come, as those of a new cluster may still be starting
PATIENCE_SECONDS = 600  # for a worker to come in the place of one that was lost
MOST_LOSSES = 3  # of one part of the pool, without an answer in between
ACTOR_LOST = "Worker holding Actor was lost"  # as Dask's scheduler says it


class WorkersLostError(RuntimeError):
    """No workers are left to hold the pool, or a part of it is lost again and again."""


@dataclass
class Held:
    """A part of the pool as this process sees it; `actor` is None where it is lost.

    `losses` counts since it last answered, and `why` tells of the last one.
    """

    groups: list
    worker: str = ""
    future: object = None
    actor: object = None
    known: int = 0
    losses: int = 0
    why: str = ""


class Parts:
    """All parts of the pool, one on each worker.

    What they have been told is kept, so that a part that is lost can be made again.
    """

    def __init__(self, client, kind, part):
        self.client, self.kind, self.part = client, kind, part
        self.told = []
        end = time.monotonic() + FIRST_SECONDS
        while not (workers := len(self._workers())):
            if time.monotonic() > end:
                raise WorkersLostError(
                    f"the Dask client has no workers, and none came within {FIRST_SECONDS} s: "
                    "start some and run again"
                )
            time.sleep(0.1)
        blocks = range(block_count(part.candidates))
        groups = [list(blocks[i : i + GROUP]) for i in range(0, len(blocks), GROUP)]
        split = np.array_split(range(len(groups)), min(len(groups), workers))
        self.held = [Held([groups[i] for i in own]) for own in split]

    def __enter__(self):
        self._stack = ExitStack()
        # Actors are called through the current client, whoever made them.
        self._stack.enter_context(self.client.as_current())
        self._stack.callback(
            setattr, self.client, "direct_to_workers", self.client.direct_to_workers
        )
        self.client.direct_to_workers = True  # or each call would go through the scheduler
        return self

    def __exit__(self, *error):
        self.held.clear()  # and so the actors
        self._stack.close()

    def tell(self, lesson):
        """Have all parts learn it, before they answer the next question."""
        self.told.append(lesson)

    def ask(self, question, *arguments):
        """The answers of all parts, in the order of the pool."""
        answers = {}
        while len(answers) < len(self.held):
            left = [i for i in range(len(self.held)) if i not in answers]
            self._place([self.held[i] for i in left if self.held[i].actor is None])
            asked = {i: self._ask(self.held[i], question, arguments) for i in left}
            for i, call in asked.items():
                held = self.held[i]
                found = call and self._wait(held, call)
                if found is None:
                    self._lose(held)
                else:
                    (answers[i],) = found
                    held.known, held.losses = len(self.told), 0
        return [answers[i] for i in range(len(self.held))]

    def _ask(self, held, question, arguments):
        try:
            answer = held.actor.answer
        except RuntimeError:  # its worker was lost
            return None
        return answer(self.told[held.known :], question, *arguments)

    def _wait(self, held, call):
        """The answer to a call in a tuple, or None where the worker was lost."""
        while True:
            try:
                return (call.result(timeout=LOOK_SECONDS),)
            except TimeoutError:
                if call.done():  # by now, or with this as its answer
                    return (call.result(),)
                if held.future.status != "finished":
                    return None
            except OSError as error:
                held.why = f": {error}"
                return None

    def _lose(self, held):
        held.future = held.actor = None
        held.losses += 1
        if held.losses > MOST_LOSSES:
            raise WorkersLostError(
                f"a part of the pool was lost with its worker {held.losses} times in a row"
                f"{held.why}. Check that each worker has enough memory for its part (see the notes "
                "of bqlib.sharded.sbq), and that this process can connect to the workers directly"
            )

    def _place(self, lost):
        """Make parts of the pool on workers that hold none."""
        end = time.monotonic() + PATIENCE_SECONDS
        while lost:
            used = {held.worker for held in self.held if held.actor is not None}
            free = [worker for worker in self._workers() if worker not in used]
            placed = list(zip(lost, free))  # noqa: B905
            for held, worker in placed:
                held.worker, held.known = worker, 0
                held.future = self.client.submit(
                    self.kind,
                    self.part,
                    held.groups,
                    actor=True,
                    pure=False,
                    workers=[worker],
                )
            for held, _ in placed:
                held.actor = self._made(held)
                if held.actor is None:
                    self._lose(held)
            lost = [held for held in lost if held.actor is None]
            if lost and time.monotonic() > end:
                raise WorkersLostError(
                    f"{len(lost)} parts of the pool have no worker: workers were lost, and no new "
                    f"ones came within {PATIENCE_SECONDS} s. Start workers and run again"
                )
            if lost:
                time.sleep(0.2)

    def _made(self, held):
        """The actor, once it is made; None where its worker was lost before."""
        while True:
            try:
                return held.future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if held.future.done():
                    return held.future.result()
                if held.worker not in self._workers():  # Dask would wait for it for ever
                    return None
            except (KilledWorker, CancelledError):
                return None
            except RuntimeError as error:
                if str(error) != ACTOR_LOST:
                    raise
                return None

    def _workers(self):
        if self.client.status not in ("running", "connecting"):
            raise WorkersLostError(
                "the Dask client is closed, or it has lost its scheduler: connect a new client"
            )
        return sorted(self.client.scheduler_info(n_workers=-1).get("workers", {}))
