# Amaranth has no types; without these mypy does not take its enums for enums.
import enum
from enum import auto as auto
from enum import unique as unique
from typing import Any

class EnumType(enum.EnumMeta): ...

class Enum(enum.Enum, metaclass=EnumType):  # type: ignore[misc]
    def __init_subclass__(cls, *, shape: Any = ..., view_class: Any = ...) -> None: ...

class IntEnum(enum.IntEnum, metaclass=EnumType):  # type: ignore[misc]
    def __init_subclass__(cls, *, shape: Any = ..., view_class: Any = ...) -> None: ...

class Flag(enum.Flag, metaclass=EnumType):  # type: ignore[misc]
    def __init_subclass__(cls, *, shape: Any = ..., view_class: Any = ...) -> None: ...
