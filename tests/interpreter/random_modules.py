"""Random scripts that train a model: right, or wrong on purpose at one place."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from module_drafts import HEAD, Draft, Misfit, Style, kinds_of, printed, row_of, site
from random_forwards import embedded, forward

FORMS = ("literal", "literal", "dataclass", "dict", "namespace", "constants", "parameters", "parameters")
BATCH = 4
COMMON = {"last batch": 0.1, "loss target": 0.3, "argument": 0.4, "in_features": 0.5, "norm features": 0.6}
"""How likely what nearly every script could have wrong is chosen, against 1 for the rest."""


@dataclass(frozen=True)
class Script:
    """A script; broken says what is wrong on purpose, and row where; None where nothing is."""

    text: str
    broken: str | None
    row: int | None = None


def write(seed: int) -> Script:
    """The script of this number: about three of five are broken on purpose."""
    rng = random.Random(seed)
    while True:
        try:
            template = _template(rng)
        except Misfit:
            continue
        sites = kinds_of(template)
        if rng.random() < 0.4 or not sites:
            return Script(printed(template), None)
        kinds = sorted(set(sites))
        (kind,) = rng.choices(kinds, [COMMON.get(kind, 1.0) for kind in kinds])
        number = rng.choice([at for at, each in enumerate(sites) if each == kind])
        return Script(printed(template, number), kind, row_of(template, number))


def _template(rng: random.Random) -> str:
    style = Style(rng.choice(FORMS))
    words = rng.choice((20, 50))
    given, code = _input(rng, words)
    names: dict[str, object] = {}
    exec(HEAD, names)
    net = Draft(rng, style, {"x": given}, names)
    classes: list[str] = []
    if not given.is_floating_point():
        embedded(net, words)
    parts = rng.randint(1, 3)
    for part in range(parts):
        forward(net, rng.randint(1, 3))
        if part == 0 and rng.random() < 0.5:
            _child(net, classes)
        if part == 0 and rng.random() < 0.2:
            _helper(net, classes)
    if rng.random() < 0.8:
        _to_rows(net)
    classes.append(net.text("Net", "x", "x"))
    if net.x.dim() == 0 or net.shape[0] != BATCH:
        raise Misfit
    _differentiate(net.x)
    loss, target = _loss(rng, net.x)
    made = f"Net({_arguments(net)})"
    backward = net.x.requires_grad
    body = rng.choice((_plain, _loader, _loader))(rng, made, code, target, loss, backward)
    return "\n".join((_head(style), *(f"\n{text}\n" for text in classes), *body, ""))


def _differentiate(out: torch.Tensor) -> None:
    """Misfit where something was written over that the gradients need, or where torch itself crashes."""
    if out.requires_grad:
        if _crashes(out):
            raise Misfit
        try:
            out.sum().backward()
        except RuntimeError as error:
            raise Misfit from error


def _crashes(out: torch.Tensor) -> bool:
    """Tell whether a gradient ends at the weight of GroupNorm, for a channels-last input.

    torch 2.13 ends the process there, with a segmentation fault.
    """
    waiting, seen = [out.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "NativeGroupNormBackward0":
            given = node._saved_input
            last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(given.dim())
            if last is not None and not given.requires_grad and given.is_contiguous(memory_format=last):
                return True
        waiting += [inner for inner, _ in node.next_functions]
    return False


def _input(rng: random.Random, words: int) -> tuple[torch.Tensor, str]:
    """What a batch holds, and the code that makes so many of them."""
    kind = rng.choice(("rows", "sequence", "sequence", "ids", "ids", "image", "image", "image", "volume"))
    if kind == "ids":
        shape: tuple[int, ...] = (rng.randint(3, 9),)
    elif kind == "rows":
        shape = (rng.choice((5, 8, 12, 16)),)
    elif kind == "sequence":
        shape = (rng.randint(3, 9), rng.choice((4, 6, 8, 10)))
    elif kind == "image":
        shape = (rng.choice((1, 3, 4)), rng.choice((8, 10, 12, 15)), rng.choice((8, 12)))
    else:
        shape = (2, 4, 6, 6)
    if kind == "ids":
        return torch.zeros(
            BATCH, *shape, dtype=torch.long
        ), f"torch.randint(0, {words}, ({{count}}, {shape[0]}))"
    inner = ", ".join(map(str, shape))
    return torch.randn(BATCH, *shape), f"torch.randn({{count}}, {inner})"


def _child(net: Draft, classes: list[str]) -> None:
    """A module inside the module."""

    def step(draft: Draft) -> None:
        child = Draft(draft.rng, draft.style, {"x": draft.x}, draft.names)
        child.parameters = {}
        forward(child, draft.rng.randint(1, 3))
        name = draft.rng.choice(("Block", "Encoder", "Stem"))
        text = child.text(name, "x", "x")
        if not child.lines:
            raise Misfit
        draft.run(text)
        made = f"{name}({_arguments(child)})"
        if child.shape == draft.shape and draft.rng.random() < 0.6:
            blocks = draft.keep(
                "blocks", f"nn.ModuleList([{made} for _ in range({draft.rng.randint(1, 3)})])"
            )
            draft.write(f"for block in {blocks}:\n    x = block(x)")
        else:
            draft.then(f"{draft.keep('child', made)}(x)")
        classes.append(text)

    net.attempt(step)


def _helper(net: Draft, classes: list[str]) -> None:
    """A function that the module calls."""

    def step(draft: Draft) -> None:
        rank = draft.x.dim()
        if rank == 2:
            text = f"def merge(a, b):\n    return torch.cat((a, b), dim={site('cat dim', '1', '2')})"
            code = "merge(x, x * 2)"
        elif rank == 3:
            moved = site("transpose left out", ".transpose(1, 2)", "")
            text = (
                f"def similar(a, b):\n    scores = torch.matmul(a, b{moved})\n    return scores.softmax(-1)"
            )
            code = "similar(x, x) @ x"
        else:
            text = "def squeeze(value, size=1):\n    return F.adaptive_avg_pool2d(value, size).flatten(1)"
            code = "squeeze(x, 2)"
        draft.run(text)
        draft.then(code)
        classes.append(text)

    net.attempt(step)


def _arguments(draft: Draft) -> str:
    given = [
        f"{name}={site('argument', str(value), str(value + 1))}" for name, value in draft.parameters.items()
    ]
    configured = ["cfg"] if draft.style.form in ("dataclass", "dict", "namespace") else []
    return ", ".join(configured + given)


def _to_rows(net: Draft) -> None:
    """A head, as classifiers have it."""
    rank = net.x.dim()
    if rank > 2:
        net.then({3: "x.mean(dim=1)", 4: "x.mean(dim=(2, 3))", 5: "x.mean((2, 3, 4))"}.get(rank, "x"))
    if net.x.dim() == 2:
        head = net.keep("head", f"nn.Linear({net.size(net.shape[-1], 'in_features')}, {net.size(5)})")
        net.then(f"{head}(x)")


def _loss(rng: random.Random, out: torch.Tensor) -> tuple[str, str]:
    """The code of the loss, and the code that makes the targets."""
    shape = tuple(out.shape)
    rest = ", ".join(map(str, shape[1:]))
    classes = shape[1] if len(shape) > 1 else 0
    if len(shape) == 2 and classes > 1 and rng.random() < 0.6:
        # A second dimension of targets is one too many.
        target = f"torch.randint(0, {classes}, ({site('loss target', '{count},', '{count}, 1')}))"
        code = rng.choice(("F.cross_entropy(out, y)", "nn.CrossEntropyLoss()(out, y)", "criterion(out, y)"))
        return rng.choice((code, "F.nll_loss(F.log_softmax(out, dim=1), y)")), target
    if len(shape) == 3 and rng.random() < 0.6:
        steps, classes = shape[1:]
        target = (
            f"torch.randint(0, {classes}, ({{count}}, {site('loss target', str(steps), str(steps + 1))}))"
        )
        moved = site("loss transpose left out", ".transpose(1, 2)", "")
        flat = f"out.reshape(-1, {classes}), y{site('loss target', '.reshape(-1)', '')}"
        return f"F.cross_entropy({rng.choice((f'out{moved}, y', flat, flat))})", target
    if len(shape) == 4 and rng.random() < 0.6:
        grid = f"{shape[2]}, {site('loss target', str(shape[3]), str(shape[3] + 1))}"
        return "F.cross_entropy(out, y)", f"torch.randint(0, {classes}, ({{count}}, {grid}))"
    names = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits")
    name = rng.choice(names)
    if shape[-1] > 1 and len(shape) > 1:
        last = site("loss target", str(shape[-1]), str(shape[-1] + 1))
        rest = ", ".join((*map(str, shape[1:-1]), last))
    inner = f"{{count}}, {rest}" if rest else "{count},"
    if rng.random() < 0.2:
        return (
            "F.binary_cross_entropy(torch.sigmoid(out), y)",
            f"torch.rand({inner})" if rest else "torch.rand({count})",
        )
    return f"F.{name}(out, y)", f"torch.rand(({inner}))"


def _head(style: Style) -> str:
    lines = [HEAD.rstrip()]
    settings = style.settings
    if style.form == "dataclass":
        fields = [f"    {name}: int = {value}" for name, value in settings.items()] or ["    seed: int = 0"]
        lines += ["from dataclasses import dataclass", "", "", "@dataclass", "class Config:", *fields]
        lines += ["", "", "cfg = Config()"]
    elif style.form == "dict":
        lines += ["", "cfg = {" + ", ".join(f'"{name}": {value}' for name, value in settings.items()) + "}"]
    elif style.form == "namespace":
        inner = ", ".join(f"{name}={value}" for name, value in settings.items())
        lines += ["from types import SimpleNamespace", "", f"cfg = SimpleNamespace({inner})"]
    elif style.form == "constants":
        lines += ["", *(f"{name} = {value}" for name, value in settings.items())]
    return "\n".join(lines)


def _step(loss: str, backward: bool) -> list[str]:
    return ["out = model(x)", f"loss = {loss}", *(["loss.backward()"] if backward else [])]


def _plain(rng: random.Random, made: str, data: str, target: str, loss: str, backward: bool) -> list[str]:
    """A single batch."""
    body = [f"model = {made}"]
    body += ["criterion = nn.CrossEntropyLoss()"] if "criterion" in loss else []
    body += [f"x = {data}".replace("{count}", str(BATCH)), f"y = {target}".replace("{count}", str(BATCH))]
    body += _step(loss, backward)
    if rng.random() < 0.5:
        return ["", *body]
    inner = [f"    {line}" for line in body]
    return ["", "def main():", *inner, "", "", 'if __name__ == "__main__":', "    main()"]


def _loader(rng: random.Random, made: str, data: str, target: str, loss: str, backward: bool) -> list[str]:
    """Batches of a loader: all of the same size, because they come out even or the rest is dropped."""
    exact = rng.random() < 0.7
    count = site("last batch", str(2 * BATCH), str(2 * BATCH + 2)) if exact else str(2 * BATCH + 2)
    data, target = data.replace("{count}", "count"), target.replace("{count}", "count")
    lines = [f"count = {count}"]
    if rng.random() < 0.3:
        lines += ["", "", "class Samples(Dataset):", "    def __init__(self):", f"        self.x = {data}"]
        lines += [
            f"        self.y = {target}",
            "",
            "    def __len__(self):",
            "        return len(self.x)",
            "",
        ]
        lines += ["    def __getitem__(self, index):", "        return self.x[index], self.y[index]", "", ""]
        lines += ["data = Samples()"]
    else:
        lines += [f"data = TensorDataset({data}, {target})"]
    drop = "" if exact else f", drop_last={site('last batch', 'True', 'False')}"
    shuffle = rng.choice(("", ", shuffle=True"))
    loader = f"DataLoader(data, batch_size={BATCH}{shuffle}{drop})"
    criterion = ["criterion = nn.CrossEntropyLoss()"] if "criterion" in loss else []
    inner = _step(loss, backward)
    if rng.random() < 0.5:
        lines += [f"loader = {loader}", f"model = {made}", *criterion]
        return ["", *lines, "for x, y in loader:", *(f"    {line}" for line in inner)]
    loop = ["def train(model, loader):", *(f"    {line}" for line in criterion)]
    loop += ["    model.train()", "    for epoch in range(2):", "        for x, y in loader:"]
    loop += [f"            {line}" for line in inner]
    return ["", *loop, "", "", *lines, f"train({made}, {loader})"]
