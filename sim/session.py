"""A capture from start to end: model, data, training, iterations, sizes.

torch is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planezip.model.registry import encodings
from planezip.sim.align import match_storages
from planezip.sim.captured import CaptureWriter, make_folder
from planezip.sim.extra import require_capture
from planezip.sim.ratios import Ratios
from planezip.sim.trace import Trace

if TYPE_CHECKING:
    from planezip.sim.batches import Batch
    from planezip.sim.capture import SavedTensor
    from planezip.sim.tracer import Step
    from planezip.sim.training import Trainer

__all__ = ["Options", "Reporter", "make_trainer", "run_capture"]


@dataclass(frozen=True)
class Options:
    """What to capture.

    Parameters
    ----------
    model : str
        As :func:`planezip.sim.workloads.build_step` takes it.
    batch : int
        Images or sequences; the paper captures 8 images or 1 sequence.
    images, text : Path or None
        Training data; without either, the model's own random inputs.
    sequence : int or None
        Tokens of a sequence.
    pretrained : bool
        Start from the library's weights instead of random ones.
    state : Path or None
        Start from a state that an earlier run saved.
    save_state : Path or None
        Save the state after training here.
    train_steps : int
        Iterations of training before the capture.
    train_batch, train_sequence : int or None
        Batch and sequence in training, where they differ.
    learning_rate : float
        Of SGD with momentum 0.9 (images) or AdamW (text).
    iterations : int
        Captured iterations, each with an update.
    types : sequence of str
        Types of the floating-point activations.
    fused_attention : bool
    seed : int
    threads : int or None
        Of torch.
    """

    model: str
    batch: int = 8
    images: Path | None = None
    text: Path | None = None
    sequence: int | None = None
    pretrained: bool = False
    state: Path | None = None
    save_state: Path | None = None
    train_steps: int = 0
    train_batch: int | None = None
    train_sequence: int | None = None
    learning_rate: float | None = None
    iterations: int = 3
    types: Sequence[str] = ("bfloat16",)
    fused_attention: bool = False
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.images is not None and self.text is not None:
            raise ValueError("images and text exclude each other")
        for name, least in (
            ("batch", 1),
            ("iterations", 1),
            ("train_steps", 0),
            ("train_batch", 1),
            ("train_sequence", 1),
            ("sequence", 1),
            ("seed", 0),
            ("threads", 1),
        ):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not least <= value < 1 << 31):
                raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
        if self.learning_rate is not None and not 0 < self.learning_rate < 1e6:
            raise ValueError(f"learning_rate must be positive, not {self.learning_rate!r}")


class Reporter:
    """Hears of the progress of a capture; this one says nothing."""

    def training(self, done: int, steps: int, loss: float, seconds_left: float) -> None:
        """One more step is done."""

    def capturing(self, total_bytes: int) -> Callable[[int], None]:
        """The capture starts; the function hears of every tensor's bytes."""
        return lambda count: None


def make_trainer(options: Options) -> tuple[Trainer, Callable[[], Iterator[Batch]]]:
    """Trainer with the training batches, and a function that makes those of the capture.

    Raises
    ------
    MissingExtraError, ModelError, DataError
    """
    import torch

    from planezip.sim.training import Trainer, load_state
    from planezip.sim.workloads import build_step

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    step = build_step(
        options.model,
        options.batch,
        device="cpu",
        fused_attention=options.fused_attention,
        sequence=options.sequence,
        pretrained=options.pretrained,
        seed=options.seed,
    )
    training, captured = _batches(options, step)
    optimizer: torch.optim.Optimizer
    if options.text is None:
        rate = 0.01 if options.learning_rate is None else options.learning_rate
        optimizer = torch.optim.SGD(step.model.parameters(), rate, momentum=0.9)
    else:
        rate = 3e-4 if options.learning_rate is None else options.learning_rate
        optimizer = torch.optim.AdamW(step.model.parameters(), rate, fused=True)
    origin = "pretrained" if options.pretrained else "random"
    trainer = Trainer(step, training, optimizer, options.fused_attention, origin)
    if options.state is not None:
        load_state(trainer, options.state)
    return trainer, captured


def _batches(options: Options, step: Step) -> tuple[Iterator[Batch], Callable[[], Iterator[Batch]]]:
    from itertools import repeat

    from planezip.sim.batches import DataError, image_batches, text_batches, tokenize

    batch, train_batch = options.batch, options.train_batch or options.batch
    if options.images is not None:
        if step.inputs[0].dim() != 4:
            raise DataError(
                f"{options.model} takes no images: its first input is of shape "
                f"{tuple(step.inputs[0].shape)}, not [batch, 3, size, size]; leave out the images"
            )
        folder, size = options.images, step.inputs[0].shape[-1]
        return (
            image_batches(folder, train_batch, size, seed=options.seed),
            lambda: image_batches(folder, batch, size, seed=options.seed + 1),
        )
    if options.text is not None:
        entries = getattr(getattr(step.model, "config", None), "vocab_size", None)
        if entries is None:
            raise DataError(
                f"{options.model} is no language model (it has no config.vocab_size): leave out "
                "the text, or take hf:NAME"
            )
        tokens = tokenize(options.text)
        length = step.inputs[0].shape[-1]
        if int(tokens.max()) >= entries:
            raise DataError(f"the text has {int(tokens.max()) + 1} tokens, the model {entries}")
        short = options.train_sequence or length
        return (
            text_batches(tokens, train_batch, short, seed=options.seed, context=length),
            lambda: text_batches(tokens, batch, length, seed=options.seed + 1),
        )
    return repeat(step.inputs), lambda: repeat(step.inputs)


def run_capture(
    options: Options,
    folder: Path | None = None,
    measure: bool = False,
    against: Trace | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Ratios]:
    """Train, capture, and write or measure what was saved.

    Parameters
    ----------
    options : Options
    folder : Path, optional
        Write the contents there.
    measure : bool
        Measure their sizes in every registered encoding.
    against : Trace, optional
        Trace at the training batch size, to which storages are mapped.
    reporter : Reporter, optional

    Returns
    -------
    dict of type to Ratios
        Empty unless ``measure``.
    """
    require_capture()
    if folder is not None:
        make_folder(folder)  # before the work
    trainer, captured = make_trainer(options)
    from planezip.sim.capture import capture, profile
    from planezip.sim.measure import Measurement
    from planezip.sim.training import save_state
    from planezip.sim.workloads import versions

    reporter = reporter or Reporter()
    steps = options.train_steps
    losses = trainer.train(
        steps, lambda done, loss, left: reporter.training(done, steps, loss, left)
    )
    if options.save_state is not None:
        save_state(trainer, options.save_state)
    trainer.batches = captured()
    trace = profile(trainer, options.model)
    add = reporter.capturing(_total_bytes(trace, options))
    measurement = Measurement(trace, encodings() if measure else [], add)
    writer = None if folder is None else CaptureWriter(folder, trace, add)

    def visit(iteration: int, dtype: str, tensors: Iterator[SavedTensor]) -> None:
        kept = list(tensors) if writer is not None and measure else tensors
        if measure:
            measurement.visit(iteration, dtype, iter(kept))
        if writer is not None:
            writer.visit(iteration, dtype, iter(kept))

    capture(trainer, trace, options.iterations, visit, options.types)
    notes = _notes(options, losses) | {"versions": versions()}
    if writer is not None:
        matched = {} if against is None else match_storages(trace, against)
        missing = set(() if against is None else against.saved) - set(matched.values())
        unmatched = sum(against.storages[n].bytes for n in missing) if against is not None else 0
        writer.finish(matched, unmatched, notes)
    if not measure:
        return {}
    return {
        dtype: measurement.ratios(dtype, options.iterations, trainer.weights, against, notes)
        for dtype in options.types
    }


def _total_bytes(trace: Trace, options: Options) -> int:
    """Bytes that the iterations visit, about (sampling left out)."""
    once = sum(
        trace.storages[n].size_bytes(2 if dtype == "bfloat16" else 4)
        for dtype in options.types
        for n in trace.saved
    )
    return once * options.iterations


def _notes(options: Options, losses: list[float]) -> dict[str, Any]:
    """Options and the mean loss of the last twenty steps; no path of this machine."""
    notes = {k: v for k, v in asdict(options).items() if v is not None and k != "threads"}
    for key in ("images", "text", "state", "save_state"):
        if key in notes:
            notes[key] = Path(notes[key]).name
    notes["types"] = list(options.types)
    if losses:
        last = losses[-20:]
        notes["first_loss"] = round(losses[0], 3)
        notes["last_loss"] = round(sum(last) / len(last), 3)
    return notes
