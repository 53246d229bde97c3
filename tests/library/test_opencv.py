"""Pictures of OpenCV have the sizes and dtypes that OpenCV gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check
from differential import compare, executed, revealed

from shapefix.interpreter.tensor_values import TensorValue

READ = "cv2.imread(PATH)"
MADE = [
    (READ, "u8", 3),
    ("cv2.imread(PATH, 0)", "u8", 2),
    ("cv2.imread(PATH, cv2.IMREAD_GRAYSCALE)", "u8", 2),
    ("cv2.imread(PATH, flags=cv2.IMREAD_COLOR)", "u8", 3),
    (f"cv2.cvtColor({READ}, cv2.COLOR_BGR2RGB)", "u8", 3),
    (f"cv2.cvtColor({READ}, cv2.COLOR_BGR2GRAY)", "u8", 2),
    (f"cv2.cvtColor({READ}, cv2.COLOR_BGR2LAB)", "u8", 3),
    (f"cv2.cvtColor({READ}, cv2.COLOR_RGB2RGBA)", "u8", 3),
    ("cv2.cvtColor(cv2.imread(PATH, 0), cv2.COLOR_GRAY2BGR)", "u8", 3),
    (f"cv2.resize({READ}, (5, 6))", "u8", 3),
    (f"cv2.resize({READ}, dsize=(5, 6), interpolation=cv2.INTER_NEAREST)", "u8", 3),
    ("cv2.resize(cv2.imread(PATH, 0), (5, 6))", "u8", 2),
    (f"cv2.resize({READ}[..., :1], (5, 6))", "u8", 2),
    (f"cv2.resize({READ}.astype('float32'), (5, 6))", "f32", 3),
    (f"cv2.resize({READ}, None, fx=0.5, fy=0.5)", "u8", 3),
    (f"cv2.flip({READ}, 1)", "u8", 3),
    (f"cv2.GaussianBlur({READ}, (5, 5), 0)", "u8", 3),
    ("cv2.threshold(cv2.imread(PATH, 0), 127, 255, cv2.THRESH_BINARY)[1]", "u8", 2),
    (f"{READ}.transpose(2, 0, 1)", "u8", 3),
    (f"np.ascontiguousarray({READ}[:, :, ::-1]) / 255.0", "f64", 3),
]


@pytest.mark.parametrize("made", [made for made, _, _ in MADE])
def test_what_is_known_is_what_opencv_makes(made: str, tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    np = pytest.importorskip("numpy")
    path = str(tmp_path / "picture.png")
    cv2.imwrite(path, np.zeros((20, 30, 3), np.uint8))
    source = f"import cv2\nimport numpy as np\nPATH = {path!r}\nreveal(torch.as_tensor({made}))"
    compare(revealed(source)[0], executed(source)[0])


@pytest.mark.parametrize(("made", "dtype", "rank"), MADE)
def test_rank_and_dtype_are_known(made: str, dtype: str, rank: int) -> None:
    (found,) = revealed(f"import cv2\nimport numpy as np\nPATH = 'x.png'\nreveal(torch.as_tensor({made}))")
    assert isinstance(found, TensorValue)
    assert found.layout is not None
    assert found.layout.rank == rank
    assert found.dtype == {"u8": "uint8", "f32": "float32", "f64": "float64"}[dtype]


def test_bytes_of_a_picture_are_no_input_of_a_layer(check: Check) -> None:
    code = """
import cv2
import torch
from torch import nn

image = cv2.cvtColor(cv2.resize(cv2.imread("x.png"), (64, 32)), cv2.COLOR_BGR2RGB)
x = torch.from_numpy(image).permute(2, 0, 1)[None]
nn.Conv2d(3, 8, 3)(x{convert})
"""
    assert [each.code for each in check(code.format(convert=""))] == ["SF512"]
    assert not check(code.format(convert=".float()"))
