"""What is synthesised: every component of both lanes, and the lanes, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planezip.hdl.align import Aligner
from planezip.hdl.block_parser import BlockParser
from planezip.hdl.chunk_buffer import ChunkBuffer
from planezip.hdl.code_parser import CodeParser
from planezip.hdl.comparator import Comparator
from planezip.hdl.compressor import CompressorLane
from planezip.hdl.control import ControlBuilder
from planezip.hdl.decompressor import DecompressorLane
from planezip.hdl.delta import Delta
from planezip.hdl.emitter import Emitter
from planezip.hdl.framer import Framer, block_meta
from planezip.hdl.intake import Intake
from planezip.hdl.payload import PayloadPacker, PayloadPlaces
from planezip.hdl.payload_path import PayloadPath
from planezip.hdl.plane_coder import CodePacker, PlaneCoder
from planezip.hdl.plane_cost import PlaneCost
from planezip.hdl.plane_rebuild import PlaneRebuild
from planezip.hdl.plane_status import PlaneStatus
from planezip.hdl.position import PositionEncoder
from planezip.hdl.running_sum import RunningSum
from planezip.hdl.serializer import Serializer
from planezip.hdl.sizer import Sizer
from planezip.hdl.transform import Transform
from planezip.hdl.transpose import Transpose
from planezip.hdl.unpack import Unpack
from planezip.hdl.untranspose import Untranspose
from planezip.model.format import Parameters, Tag

__all__ = ["LANES", "MODULES", "RAW_BITS"]

LANES = ("compressor", "decompressor")
RAW_BITS = 256  # a lane's raw bits per cycle: a block of 1,024 bits in 4 cycles

_DELTAS, _SYMBOLS = frozenset({Tag.DBX}), frozenset({Tag.BX, Tag.ZBX})


def _sizer(parameters: Parameters) -> Sizer:
    return Sizer(parameters, meta=block_meta(parameters))


MODULES: Mapping[str, Callable[[Parameters], Any]] = {
    "compressor": CompressorLane,
    "framer": Framer,
    "sizer": _sizer,
    "delta": Delta,
    "plane_status_deltas": lambda p: PlaneStatus(p, encodings=_DELTAS),
    "plane_status_symbols": lambda p: PlaneStatus(p, encodings=_SYMBOLS),
    "plane_cost_deltas": lambda p: PlaneCost(p, _DELTAS),
    "plane_cost_symbols": lambda p: PlaneCost(p, _SYMBOLS),
    "comparator": Comparator,
    "chunk_buffer": ChunkBuffer,
    "serializer": Serializer,
    "transform": Transform,
    "transpose": Transpose,
    "payload_path": PayloadPath,
    "payload_places": PayloadPlaces,
    "payload_packer": PayloadPacker,
    "position_encoder": PositionEncoder,
    "control_builder": ControlBuilder,
    "plane_coder": PlaneCoder,
    "code_packer": CodePacker,
    "aligner": Aligner,
    "decompressor": DecompressorLane,
    "intake": Intake,
    "block_parser": BlockParser,
    "code_parser": CodeParser,
    "unpack": Unpack,
    "plane_rebuild": PlaneRebuild,
    "untranspose": Untranspose,
    "running_sum": RunningSum,
    "emitter": Emitter,
}
"""Factories by name; a lane comes before its parts."""
