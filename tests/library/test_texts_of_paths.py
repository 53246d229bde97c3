"""Names of files are texts, in batches, too; one unknown path stays one path."""

from __future__ import annotations

from checking import Check

HEAD = """
import glob
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
"""


def test_names_of_files_in_a_batch_are_no_tensor(check: Check) -> None:
    for names in (
        "os.listdir(root)",
        'sorted(glob.glob(root + "/*.png"))',
        "[os.path.join(root, each) for each in os.listdir(root)]",
        "[os.path.splitext(each)[0] for each in os.listdir(root)]",
        "[os.path.basename(each) for each in glob.glob(root)]",
    ):
        code = f"""{HEAD}
class Files(Dataset):
    def __init__(self, root):
        self.names = {names}

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.zeros(3), self.names[index]

for x, name in DataLoader(Files("images"), batch_size=4):
    print(x.to("cpu"), len(name))
    name.to("cpu")
"""
        assert [each.code for each in check(code)] == ["SF405"], names


def test_a_path_is_the_file_that_was_saved(check: Check) -> None:
    code = f"""{HEAD}
def train(folder):
    net = nn.Linear(3, 4)
    path = os.path.join(folder, "best.pt")
    torch.save(net, path)
    {{other}}
    nn.Linear(3, 4).load_state_dict(torch.load(path))
"""
    assert [each.code for each in check(code.format(other=""), {"SF611"})] == ["SF611"]
    # Two names that someone types may be of one file, or of two.
    asked = code.replace('os.path.join(folder, "best.pt")', "input()").replace("load(path)", "load(input())")
    assert not [each for each in check(asked.format(other="")) if each.code in ("SF610", "SF612")]
