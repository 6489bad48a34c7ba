"""Batches for training and capture: a folder of images, a text file, or random data.

This module imports torch; others import it in functions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from planezip.sim.extra import require_capture

__all__ = ["Batch", "DataError", "image_batches", "text_batches", "tokenize"]

Batch = tuple[torch.Tensor, ...]

_IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".webp", ".bmp"}
_VOCABULARY = 50_257  # of GPT-2 (paper Section IV)
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class DataError(ValueError):
    """The images or the text cannot be used; the text says what is wanted."""


def image_batches(folder: Path, batch: int, size: int, seed: int = 0) -> Iterator[Batch]:
    """Endless batches ``(images [batch, 3, size, size], classes [batch])``.

    Standard augmentation: random resized crop and flip (paper Section IV), ImageNet
    normalisation, the images in a random order without replacement.

    Parameters
    ----------
    folder : Path
        Images, in it or in one folder per class. The class is the ImageNet index if the
        name of the folder, or of the file up to the first ``_``, is a WordNet number
        (``n01440764``), else the position among all such names.
    """
    require_capture("torchvision", "PIL")
    from PIL import Image
    from torchvision import transforms

    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _IMAGE_SUFFIXES)
    if not paths:
        raise DataError(f"{folder} has no images ({', '.join(sorted(_IMAGE_SUFFIXES))})")
    names = [p.stem.split("_")[0] if p.parent == folder else p.parent.name for p in paths]
    classes = _class_numbers(names)
    augment = transforms.Compose(
        [
            transforms.RandomResizedCrop(size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(_MEAN, _DEVIATION),
        ]
    )
    generator = torch.Generator().manual_seed(seed)

    def load(path: Path) -> torch.Tensor:
        try:
            with Image.open(path) as image:
                pixels: torch.Tensor = augment(image.convert("RGB"))
        except OSError as error:
            raise DataError(f"{path} cannot be read as an image: {error}") from error
        return pixels

    order: list[int] = []
    while True:
        while len(order) < batch:
            order += torch.randperm(len(paths), generator=generator).tolist()
        chosen, order = order[:batch], order[batch:]
        yield (
            torch.stack([load(paths[k]) for k in chosen]),
            torch.tensor([classes[names[k]] for k in chosen]),
        )


def _class_numbers(names: list[str]) -> dict[str, int]:
    """ImageNet's number of each WordNet name where timm knows them all, else by order."""
    distinct = sorted(set(names))
    try:
        from timm.data.imagenet_info import ImageNetInfo
    except ImportError:
        return {name: k for k, name in enumerate(distinct)}
    known = {name: k for k, name in enumerate(ImageNetInfo().label_names())}
    if all(name in known for name in distinct):
        return {name: known[name] for name in distinct}
    return {name: k for k, name in enumerate(distinct)}


def tokenize(text: Path) -> torch.Tensor:
    """Tokens of a text file, int64 [tokens].

    The vocabulary is a byte-level BPE of at most 50,257 tokens learned on the same text
    (paper Section IV).
    """
    require_capture("tokenizers")
    from tokenizers import ByteLevelBPETokenizer

    if not text.is_file():
        raise DataError(f"there is no text file {text}")
    try:
        content = text.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{text} is not UTF-8 text: {error}") from error
    tokenizer: Any = ByteLevelBPETokenizer()
    tokenizer.train([str(text)], vocab_size=_VOCABULARY, show_progress=False)
    return torch.tensor(tokenizer.encode(content).ids)


def text_batches(
    tokens: torch.Tensor, batch: int, sequence: int, seed: int = 0, context: int = 0
) -> Iterator[Batch]:
    """Endless batches of windows at random places, int64 [batch, sequence].

    With ``context`` above ``sequence`` the window's positions come with it, int64
    [1, sequence]: a random stretch of the context, so that training on short windows
    reaches the embeddings of all positions.
    """
    if len(tokens) <= sequence:
        raise DataError(f"the text has {len(tokens)} tokens; more than {sequence} are needed")
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - sequence, (batch,), generator=generator)
        windows = torch.stack([tokens[k : k + sequence] for k in starts])
        if context > sequence:
            first = int(torch.randint(context - sequence + 1, (), generator=generator))
            yield windows, torch.arange(first, first + sequence)[None]
        else:
            yield (windows,)
