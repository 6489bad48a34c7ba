"""Errors that the command shows as one line."""

from __future__ import annotations

__all__ = ["CliError"]


class CliError(Exception):
    """Bad input; the text names the remedy."""
