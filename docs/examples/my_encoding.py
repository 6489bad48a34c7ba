"""An encoding of one's own: a byte plane once per block where all symbols share it.

Try it: planezip ratio --codec all --with docs/examples/my_encoding.py FILE.npz
"""

import numpy as np

from planezip.model.registry import register


class SharedBytes:
    """One flag per byte of the symbols; the byte once if all symbols share it, else N times."""

    name = "shared-bytes"
    tag_bits = 1  # raw or not

    def bits(self, blocks: np.ndarray, w: int) -> np.ndarray:
        planes = blocks.reshape(len(blocks), -1, w // 8)  # block, symbol, byte of the symbol
        shared = (planes == planes[:, :1]).all(axis=1)
        return (w // 8) + np.where(shared, 8, 8 * planes.shape[1]).sum(axis=1)


register(SharedBytes())
