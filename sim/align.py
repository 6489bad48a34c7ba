"""Which storage of one trace is which in another of the same model (paper Section IV).

The operator sequences of a model differ slightly between batch sizes (GPT-2: a batch
of one needs fewer copies), so the sequences are aligned and some storages stay
unmatched.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from planezip.sim.trace import Phase, Trace

__all__ = ["match_storages"]


def match_storages(captured: Trace, trace: Trace) -> dict[int, int]:
    """Saved storage of ``captured`` to its counterpart among those saved in ``trace``.

    Storages are counterparts if aligned operators make them in the same slot, with the
    same type and category, and with sizes that are equal or in the ratio of the batches.
    Forward operators that compute are aligned by name and module.
    """
    ours, theirs = _forward(captured), _forward(trace)
    matcher = SequenceMatcher(
        None, [key for _, key in ours], [key for _, key in theirs], autojunk=False
    )
    position = {-1: -1}
    for a, b, length in matcher.get_matching_blocks():
        for k in range(length):
            position[ours[a + k][0]] = theirs[b + k][0]
    by_signature = {(trace.storages[n].producer, trace.storages[n].slot): n for n in trace.saved}
    found = {}
    for n in captured.saved:
        s = captured.storages[n]
        if s.producer not in position:
            continue
        other = by_signature.get((position[s.producer], s.slot))
        if other is None:
            continue
        t = trace.storages[other]
        scaled = s.bytes * trace.batch == t.bytes * captured.batch
        if (s.dtype, s.category) == (t.dtype, t.category) and (scaled or s.bytes == t.bytes):
            found[n] = other
    return found


def _forward(trace: Trace) -> list[tuple[int, tuple[str, str]]]:
    return [
        (i, (op.name, op.scope))
        for i, op in enumerate(trace.ops)
        if op.phase is Phase.FORWARD and not op.view
    ]
