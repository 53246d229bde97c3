"""Truth values of library objects: `if self.transform:` is True for all but those with a length."""

from __future__ import annotations

import inspect

import pytest
from differential import executed, revealed

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import WITH_LENGTH, truth


@pytest.mark.parametrize("package", ["torch.nn", "torch.optim"])
def test_objects_of_torch_are_true_unless_they_have_a_length(package: str) -> None:
    import torch

    members = vars(torch.nn if package == "torch.nn" else torch.optim)
    classes = {f"{package}.{name}": each for name, each in members.items() if inspect.isclass(each)}
    measured = {
        name
        for name, each in classes.items()
        if (hasattr(each, "__len__") or hasattr(each, "__bool__")) and "Uninitialized" not in name
    }
    assert len(classes) > 10
    assert measured == {name for name in WITH_LENGTH if name.startswith(f"{package}.")}


@pytest.mark.parametrize("made", ["nn.ReLU()", "nn.Linear(2, 3)", "nn.CrossEntropyLoss()", "nn.Sequential()"])
def test_truth_is_that_of_torch(made: str) -> None:
    (ours,), (real,) = revealed(f"reveal({made})"), executed(f"reveal({made})")
    assert truth(ours) in (None, bool(real))
    assert (truth(ours) is None) == made.startswith("nn.Sequential")


SAMPLES = """
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Images(Dataset):
    def __init__(self, files, transform=None):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB")
        if self.transform:
            image = self.transform(image)
        return image

transform = transforms.Compose([transforms.Resize((64, 48)), transforms.ToTensor()])
for batch in DataLoader(Images(open("names").read().split(), {given}), batch_size=4):
    reveal(batch)
"""


@pytest.mark.parametrize(("given", "sizes"), [("transform", 4), ("None", None)])
def test_a_batch_of_transformed_images_has_sizes(given: str, sizes: int | None) -> None:
    (batch,) = revealed(SAMPLES.replace("{given}", given))
    layout = batch.layout if isinstance(batch, TensorValue) else None
    assert (None if layout is None else layout.rank) == sizes
    if layout is not None:
        assert [size.value for size in layout.sizes[1:]] == [3, 64, 48]
