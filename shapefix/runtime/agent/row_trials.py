"""Trials of a model in a forked copy of the process: the dependencies of its output.

The first call of a model in a training step is repeated in evaluation mode, with other rows around one that
stays, and with other parameters where the step gave no gradient. The script's own process is not changed: no
random numbers, no buffers, no attributes.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import nn

from ..protocol import MixedRows, RowTrialLine, UserPlace
from . import frames
from .construction_sites import ConstructionSites
from .extra_batches import row_count
from .session import Session
from .watchers.loss_graphs import LossGraphs, graph_nodes

_SECONDS, _COSTLY, _LARGE = 20, 2.0, 64 << 20
_SAME, _OTHER = 1e-6, 1e-3
"""Relative differences: of two equal calls at most, and of a changed output at least."""

_MODELS, _CUT = 2, 5


@dataclass
class _Call:
    """The first training call of a model; operations are those of its outputs.

    used is the number of the first output that the loss depends on. made holds the memory of the outputs,
    given that of the inputs.
    """

    model: Any
    args: Any
    kwargs: Any
    operations: tuple[int | None, ...]
    called_at: UserPlace | None
    names: dict[int, str]
    made: tuple[Any, ...] = ()
    given: frozenset[int] = frozenset()
    used: int = 0


class RowTrials:
    """The trials of one session, made before the first step of an optimizer, or else at the end."""

    def __init__(self, session: Session, constructions: ConstructionSites) -> None:
        self._session = session
        self._constructions = constructions
        self._calls: list[_Call] = []
        self._done = False
        self._frozen: set[int] = set()

    def ran(self, module: Any) -> None:
        """Note a run of a module without gradients: it is frozen on purpose."""
        if not self._done and not torch.is_grad_enabled():
            self._frozen.add(id(module))

    def called(self, model: Any, args: Any, kwargs: Any, out: Any, seconds: float, caller: FrameType) -> None:
        """Keep the first training calls of models, if they can be repeated at little cost."""
        if self._done or not self._session.takes_extra_batches or len(self._calls) >= _MODELS:
            return
        tensors = list(_tensors([args, kwargs]))
        size = sum(each.numel() * each.element_size() for each in tensors)
        plain = all(each.device.type == "cpu" and each.layout is torch.strided for each in tensors)
        trained = next(model.parameters(), None) is not None
        if not trained or not tensors or not plain or size > _LARGE or seconds > _COSTLY:
            return
        names = {id(each): name for name, each in model.named_modules()}
        made_by = (None if each.grad_fn is None else each.grad_fn._sequence_nr() for each in _tensors(out))
        made = tuple(each.untyped_storage() for each in _tensors(out))
        given = frozenset(each.untyped_storage().data_ptr() for each in tensors)
        self._calls.append(
            _Call(model, args, kwargs, tuple(made_by), frames.site(caller), names, made, given)
        )

    def run(self, missing: list[Any], graphs: LossGraphs) -> None:
        """Make the trials, once; missing are the parameters of the optimizer without a gradient."""
        calls, self._calls = self._calls, []
        if self._done or not self._session.watches():
            return
        self._done = True
        if not hasattr(os, "fork") or torch.cuda.is_initialized():
            return
        start = time.monotonic()
        # A parameter in the graph had a gradient, which the script removed.
        lacking = {id(each) for each in missing} - graphs.parameters.keys() if graphs.parameters else set()
        for call in calls:
            rows = self._rows(call)
            used = [number for number, each in enumerate(call.operations) if each in graphs.operations]
            if not used and graphs.operations:
                self._report_detached(call, calls, lacking, graphs)
            if not used or (rows is None and not lacking):
                continue
            call.used = used[0]
            found = _in_fork(lambda call=call, rows=rows: _trial(call, rows, lacking, self._frozen))  # type: ignore[misc]
            if found is None:
                continue
            modules = dict(call.model.named_modules())
            mixed, cut = found.get("mixed"), found.get("cut") or []
            if mixed is not None:
                module = modules.get(mixed["module"], call.model)
                mixed["constructed_at"] = self._constructions.site_of(module)
            self._session.sink.write(
                RowTrialLine(
                    kind="row_trial",
                    model=type(call.model).__name__,
                    rows=rows or 0,
                    mixed=mixed,
                    constant=bool(found.get("constant")),
                    cut=cut,
                    cut_at=self._constructions.site_of(modules[cut[0]]) if cut else None,
                    detached_at=found.get("detached_at"),
                    called_at=call.called_at,
                    constructed_at=self._constructions.site_of(call.model),
                )
            )

        self._session.own_seconds += time.monotonic() - start

    def _report_detached(
        self, call: _Call, calls: list[_Call], lacking: set[int], graphs: LossGraphs
    ) -> None:
        """Report a model without gradients, with its output detached and given to another one."""
        trained = [each for each in call.model.parameters() if each.requires_grad]
        memory = {each.data_ptr() for each in call.made}
        readers = [
            other
            for other in calls
            if other is not call
            and other.given & memory
            and any(each in graphs.operations for each in other.operations)
        ]
        recorded = any(each is not None for each in call.operations)
        if not readers or not recorded or id(call.model) in self._frozen:
            return
        if not trained or not all(id(each) in lacking for each in trained):
            return
        modules = dict(call.model.named_modules())
        owners = [name for name, each in modules.items() if list(each.parameters(recurse=False))]
        cut = [name or type(call.model).__name__ for name in owners[:_CUT]]
        self._session.sink.write(
            RowTrialLine(
                kind="row_trial",
                model=type(call.model).__name__,
                rows=0,
                mixed=None,
                constant=False,
                cut=cut,
                cut_at=self._constructions.site_of(modules[owners[0]]),
                detached_at=None,
                called_at=call.called_at,
                constructed_at=self._constructions.site_of(call.model),
            )
        )

    def _rows(self, call: _Call) -> int | None:
        """The samples of a call, if they are sure to be in dimension 0: those of a batch or a loss."""
        rows = row_count(list(_tensors([call.args, call.kwargs])))
        if rows is None or rows < 3 or rows not in (self._session.batch_rows, self._session.loss_rows):
            return None
        # A square of the samples is a graph between them.
        given = [*_tensors([call.args, call.kwargs]), *_own_tensors(call.model)]
        return None if any(list(each.shape[1:]).count(rows) for each in given) else rows


def _own_tensors(model: nn.Module) -> Iterator[torch.Tensor]:
    """The buffers and plain tensors of a model."""
    yield from model.buffers()
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, torch.Tensor):
                yield value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested sequences and mappings, except numbers."""
    if isinstance(value, torch.Tensor):
        if value.dim():
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _in_fork(trial: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """The result of a function in a fork; None if it fails or takes too long."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        child = os.fork()
    if child == 0:
        _child(trial, writer)
    os.close(writer)
    text = b""
    deadline = time.monotonic() + _SECONDS
    try:
        while select.select([reader], [], [], max(deadline - time.monotonic(), 0))[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                return json.loads(text) if text else None
            text += part
        os.kill(child, signal.SIGKILL)
        return None
    finally:
        os.close(reader)
        os.waitpid(child, 0)


def _child(trial: Callable[[], dict[str, Any]], writer: int) -> None:
    """Run a trial and end the process."""
    from .session import exit_now

    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        torch.set_num_threads(1)  # the threads of the parent do not exist here
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            os.write(writer, json.dumps(trial()).encode())
    except BaseException:
        pass
    exit_now(0)


def _trial(call: _Call, rows: int | None, missing: set[int], frozen: set[int]) -> dict[str, Any]:
    """The trials of one call, in the fork."""
    call.model.eval()
    first, again = _Recorder(call), _Recorder(call)
    out = first.out(call.args, call.kwargs)
    if out is None or not _difference(out, again.out(call.args, call.kwargs, seed=1)) <= _SAME:
        return {}
    found: dict[str, Any] = {}
    if rows is not None and out.shape[0] == rows and list(out.shape[1:]).count(rows) == 0:
        other = _Recorder(call)
        shifted = other.out(_shifted(call.args, rows), _shifted(call.kwargs, rows))
        if (
            shifted is not None
            and _difference(out[-1], shifted[-1]) > _OTHER
            and not _batch_statistics(call.model)
        ):
            found["mixed"] = _blame(first, other, rows)
        found["constant"] = _is_constant(call, out)
    found["cut"] = list(_cut(call, out, missing, frozen))
    if found["cut"]:
        found["detached_at"] = _detached_at(call, missing)
    return found


def _detached_at(call: _Call, missing: set[int]) -> UserPlace | None:
    """The place of the first detached result, in the user's code."""
    places: list[UserPlace | None] = []

    def note(tensor: torch.Tensor, caller: FrameType) -> None:
        if not places and tensor.requires_grad and frames.is_users(caller.f_code.co_filename):
            nodes = () if tensor.grad_fn is None else graph_nodes(tensor.grad_fn)
            leaves = [tensor, *(getattr(each, "variable", None) for each in nodes)]
            if any(id(each) in missing for each in leaves):
                places.append(frames.site(caller))

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: torch.Tensor) -> Any:
            note(self, sys._getframe(1))
            return original(self)

        return method

    plain, data = torch.Tensor, torch._C.TensorBase.data
    plain.detach, plain.detach_ = watched(plain.detach), watched(plain.detach_)
    plain.data = property(watched(data.__get__), data.__set__)
    with torch.enable_grad():
        call.model(*call.args, **call.kwargs)
    return places[0] if places else None


def _difference(left: torch.Tensor, right: torch.Tensor | None) -> float:
    """The largest difference of two outputs, relative to the largest value; nan for different sizes."""
    if right is None or left.shape != right.shape or left.numel() == 0:
        return float("nan")
    greatest = float(left.abs().max())
    return float((left - right).abs().max()) / greatest if greatest else float((left - right).abs().max())


def _shifted(value: Any, rows: int) -> Any:
    """A copy of the arguments with the same last row; each other row is the next one."""
    if isinstance(value, torch.Tensor):
        return torch.cat([value[1:], value[-1:]]) if value.dim() and value.shape[0] == rows else value
    if isinstance(value, Mapping):
        return {key: _shifted(each, rows) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_shifted(each, rows) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class _Recorder:
    """One call of a model, with the input and output of each module, in the order of return."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self.seen: list[tuple[str, str, Any, Any]] = []

    def out(self, args: Any, kwargs: Any, seed: int = 0) -> torch.Tensor | None:
        """The output used by the loss, with the random numbers of a seed."""
        _seed(seed)
        handles = [
            module.register_forward_hook(self._record, with_kwargs=True)
            for module in self._call.model.modules()
        ]
        try:
            out = self._call.model(*args, **kwargs)
        finally:
            for each in handles:
                each.remove()
        found = list(_tensors(out))
        if len(found) != len(self._call.operations) or not found[self._call.used].is_floating_point():
            return None
        return found[self._call.used].clone()

    def _record(self, module: Any, args: Any, kwargs: Any, out: Any) -> None:
        if len(self.seen) < 2000:
            first = next(_tensors([args, kwargs]), None)
            result = next(_tensors(out), None)
            kept = [None if each is None else each.detach().clone() for each in (first, result)]
            self.seen.append(
                (self._call.names.get(id(module)) or "", type(module).__name__, kept[0], kept[1])
            )


def _seed(seed: int) -> None:
    """Seed Python, torch and NumPy, if it is loaded."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _blame(first: _Recorder, other: _Recorder, rows: int) -> MixedRows:
    """The first module with another last row of its output for other rows of its input."""
    before = ""
    for (name, kind, given, out), (_, _, given_too, out_too) in zip(first.seen, other.seen, strict=False):
        if out is None or out_too is None or given is None:
            continue
        samples = given.shape[0] == rows
        if not samples or _difference(given[-1].float(), given_too[-1].float()) > _OTHER:
            # The rows were mixed, or flattened, in front of it.
            return MixedRows(
                module="", type="", size=list(given.shape), before=name, after=before, constructed_at=None
            )
        if out.shape[0] != rows or _difference(out[-1].float(), out_too[-1].float()) > _OTHER:
            return MixedRows(
                module=name, type=kind, size=list(given.shape), before="", after="", constructed_at=None
            )
        before = name
    return MixedRows(module="", type="", size=[], before="", after=before, constructed_at=None)


def _batch_statistics(model: nn.Module) -> bool:
    """Whether a model uses the statistics of the batch in evaluation mode, on purpose."""
    return any(
        getattr(each, "track_running_stats", True) is False
        for each in model.modules()
        if _is_batch_norm(each)
    )


def _is_batch_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def _is_constant(call: _Call, out: torch.Tensor) -> bool:
    """Whether the output is the same for all rows, although their inputs differ and no weight is zero."""
    given = next(_tensors([call.args, call.kwargs]))
    rows = given.reshape(len(given), -1)
    if len(torch.unique(rows, dim=0)) < len(rows) or not bool(torch.equal(out, out[:1].expand_as(out))):
        return False
    weights = (each for each in call.model.parameters() if each.dim() > 1)
    return all(bool(each.any()) for each in weights)


def _cut(call: _Call, out: torch.Tensor, missing: set[int], frozen: set[int]) -> Iterator[str]:
    """The modules without a gradient, but with an effect on the output."""
    owners = {
        name: module
        for name, module in call.model.named_modules()
        if id(module) not in frozen
        and (own := list(module.parameters(recurse=False)))
        and all(id(each) in missing for each in own)
    }
    for name, module in itertools.islice(owners.items(), _CUT):
        kept = [each.clone() for each in module.parameters(recurse=False)]
        for each in module.parameters(recurse=False):
            each.add_(torch.randn_like(each) + 0.5)
        changed = _Recorder(call).out(call.args, call.kwargs)
        for each, value in zip(module.parameters(recurse=False), kept, strict=True):
            each.copy_(value)
        if changed is not None and _difference(out, changed) > _OTHER:
            yield name
