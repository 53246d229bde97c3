"""Small programs and a log, for what other programs ask of shapefix."""

VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1]\ny = x.view(-1, 8)\n"
NET = """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)
"""
LOG = """\
Traceback (most recent call last):
  File "train.py", line 4, in <module>
    y = x.view(-1, 8)
RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans \
across two contiguous subspaces). Use .reshape(...) instead.
"""
