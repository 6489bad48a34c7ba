"""Plan, state and log of the machine (:mod:`planezip.sim.machine`), as arrays."""

from __future__ import annotations

from typing import NamedTuple

from planezip.sim.graph import Ints

__all__ = ["LOG_COLUMNS", "Event", "Machine", "S"]

LOG_COLUMNS = 6


class Events(NamedTuple):
    """First column of a log row; then start, end in ns and three numbers."""

    COMPUTE: int = 0  # op, replayed tensor or -1, -
    ALLOCATE: int = 1  # storage, owner (replayed tensor, -1: resident), bytes
    FREE: int = 2  # likewise
    SWAP_OUT: int = 3  # tensor
    SWAP_IN: int = 4  # tensor
    ISSUE: int = 5  # tensor, op
    STALL: int = 6  # op, tensor waited for, 0: operand, 1: memory


Event = Events()


class Scalars(NamedTuple):
    """Places of the machine's scalars."""

    NOW: int = 0
    LIVE: int = 1
    PEAK: int = 2
    QUEUED: int = 3  # swap-outs queued so far
    COPIED: int = 4  # and ended
    OUT_FREE: int = 5  # when the device-to-host link is free
    ISSUED: int = 6  # prefetches issued so far
    HEAD: int = 7  # next to start or in flight
    BUSY: int = 8  # one is in flight
    IN_FREE: int = 9  # when the host-to-device link is free
    CLOCK: int = 10  # time up to which the queues were followed
    ROWS: int = 11  # of the log
    REPLAY: int = 12  # ns of replays
    WAIT_OPERAND: int = 13  # ns
    WAIT_MEMORY: int = 14  # ns
    FAILED_OP: int = 15  # -1: none
    MISSING: int = 16  # bytes
    COUNT: int = 17


S = Scalars()


class Machine(NamedTuple):
    """Plan, durations and work space; int64 arrays.

    ``state`` per tensor, ``order`` of the prefetches, ``chain_ops`` of all replays;
    ``tensors`` with a column for each name from ARRIVES to ISSUE_NS (one row more than
    tensors, for CHAIN), ``storages`` with LAST and HELD, ``lists`` with AT_END (per
    operator) and NEXT (per item).
    """

    state: Ints
    order: Ints
    chain_ops: Ints
    tensors: Ints
    storages: Ints
    lists: Ints
    scalars: Ints
    log: Ints


# Columns of tensors: prefetch point, last replay, durations, first of its chain_ops;
# then work space: swap-out queue, end of the swap-out, it has ended, the tensor is on
# the device, its last forward use has ended, prefetch issued at
ARRIVES, LAST_NEED, OUT_NS, IN_NS, CHAIN = 0, 1, 2, 3, 4
QUEUE, OUT_END, COPIED, RESIDENT, UNUSED, ISSUE_NS = 5, 6, 7, 8, 9, 10
LAST, HELD = 0, 1
AT_END, NEXT = 0, 1
