"""A demo in a file of a library does not decide on the devices of its functions; scripts do."""

from __future__ import annotations

from pathlib import Path

from checking import analyzed

MODEL = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(x)


if __name__ == "__main__":
    net = Net()
    print(net(torch.randn(8, 4).to(device)))
"""
TRAIN = """
import torch
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 4).to(device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def codes(folder: Path, name: str) -> list[str]:
    path = folder / name
    return [found.code for found in analyzed(path, path.read_text("utf-8"), {"SF602", "SF603"}).diagnostics]


def test_a_demo_alone_is_the_only_caller(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    assert codes(tmp_path, "model.py") == ["SF602"]


def test_a_training_script_decides_instead_of_the_demo(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    assert codes(tmp_path, "model.py") == []
    assert codes(tmp_path, "train.py") == []


def test_a_script_that_is_wrong_itself_reports_it(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "train.py").write_text(TRAIN.replace("Net().to(device)", "Net()"), "utf-8")
    assert codes(tmp_path, "model.py") == []
    assert codes(tmp_path, "train.py") == ["SF602"]


def test_another_file_that_only_imports_the_model_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    (tmp_path / "sizes.py").write_text("import torch\nfrom model import Net\nprint(Net())\n", "utf-8")
    assert codes(tmp_path, "model.py") == ["SF602"]


def test_a_file_that_trains_is_no_demo(tmp_path: Path) -> None:
    training = "    net(torch.randn(8, 4).to(device)).mean().backward()\n"
    (tmp_path / "model.py").write_text(MODEL + training, "utf-8")
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    assert codes(tmp_path, "model.py") == ["SF602"]


LIBRARY = (
    MODEL[: MODEL.index("if __name__")]
    + """
def predict(net, x):
    return net(x.to(device))
"""
)
TEST = """
import torch
from model import Net, device, predict


def test_sizes():
    assert predict(Net(), torch.randn(8, 4)).shape == (8, 2)
"""


def test_a_test_on_the_cpu_decides_nothing_for_the_library(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(LIBRARY, "utf-8")
    (tmp_path / "test_model.py").write_text(TEST, "utf-8")
    (tmp_path / "predict.py").write_text(TEST + "\n\ntest_sizes()\n", "utf-8")
    assert codes(tmp_path, "test_model.py") == []
    assert codes(tmp_path, "predict.py") == ["SF602"]


def test_a_test_that_mixes_devices_itself_is_wrong(tmp_path: Path) -> None:
    mixed = TEST.replace("predict(Net(), torch.randn(8, 4))", "Net()(torch.randn(8, 4, device=device))")
    (tmp_path / "model.py").write_text(LIBRARY, "utf-8")
    (tmp_path / "test_model.py").write_text(mixed, "utf-8")
    assert codes(tmp_path, "test_model.py") == ["SF602"]
