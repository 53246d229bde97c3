"""SF608 and the ways in which Python makes an object, as torch answers them."""

from __future__ import annotations

import pytest
from checking import Check

PREAMBLE = """
import abc
import torch
from torch import nn

class Initializing(type):
    def __call__(cls, *args, **kwargs):
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        cls.__init__(made, *args, **kwargs)
        return made

class Made(nn.Module, metaclass=Initializing):
    def __init__(self):
        pass

class New(nn.Module):
    def __new__(cls):
        made = super().__new__(cls)
        nn.Module.__init__(made)
        return made

class Kept(nn.Module):
    def __setattr__(self, name, value):
        self.__dict__[name] = value

def initialized(cls):
    before = cls.__init__
    def __init__(self):
        nn.Module.__init__(self)
        before(self)
    cls.__init__ = __init__
    return cls

class Subject({bases}):
    def __init__(self):
        self.layer = nn.Linear(2, 2)

Subject()
"""


@pytest.mark.parametrize(
    ("decorator", "bases"),
    [
        ("", "nn.Module"),
        ("", "nn.Module, metaclass=abc.ABCMeta"),
        ("", "nn.Module, metaclass=type(nn.Module)"),
        ("", "nn.Module, metaclass=Initializing"),
        ("", "Made"),
        ("", "New"),
        ("", "Kept"),
        ("", "*[nn.Module]"),
        ("@initialized", "nn.Module"),
    ],
)
def test_a_finding_is_an_error_of_torch(decorator: str, bases: str, check: Check) -> None:
    pytest.importorskip("torch")
    subject = f"{decorator}\nclass Subject({bases})"
    source = PREAMBLE.replace("class Subject({bases})", subject)
    try:
        exec(compile(source, "subject.py", "exec"), {"__name__": "subject"})
    except AttributeError:
        is_refused = True
    else:
        is_refused = False
    found = bool(check(source, {"SF608"}))
    # `type(...)` and unpacked bases are not looked into.
    assert found == is_refused or (is_refused and ("type(" in bases or "*" in bases))
