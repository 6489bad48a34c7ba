"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["printable", "table"]


def printable(text: str) -> str:
    """``text`` with everything escaped that could steer a terminal or break a line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns two spaces apart, the first ``left`` of them to the left, the others right."""
    lines = [[printable(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
