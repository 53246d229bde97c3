"""Errors that code provokes on purpose are no findings; others in the same file are."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

HEAD = """
import unittest
import numpy as np
import pytest
import torch
from pytest import raises
from torch import nn

model = nn.Linear(4, 2)
x = torch.randn(8, 5)
"""
PROVOKED = {
    "pytest.raises": """
        def test_it():
            with pytest.raises(RuntimeError):
                x @ x
        """,
    "imported raises": """
        def test_it():
            with raises(RuntimeError, match="shapes"):
                y = x + 1
                y @ y
        """,
    "a function that is passed": """
        def test_it():
            def bad():
                return x @ x
            pytest.raises(RuntimeError, bad)
        """,
    "a method of unittest": """
        class Tests(unittest.TestCase):
            def test_it(self):
                with self.assertRaisesRegex(RuntimeError, "shapes"):
                    x @ x

            def test_passed(self):
                def bad():
                    return x @ x
                self.assertRaises(RuntimeError, bad)
        """,
    "a function of numpy": """
        def test_it():
            with np.testing.assert_raises(RuntimeError):
                x @ x
        """,
    "a test that is skipped": """
        def test_it():
            try:
                x @ x
            except Exception as error:
                pytest.skip(f"not supported: {error}")

        class Tests(unittest.TestCase):
            def test_it(self):
                try:
                    x @ x
                except RuntimeError:
                    raise unittest.SkipTest("not supported")
        """,
    "a test that is known to fail": """
        @pytest.mark.xfail(reason="sizes")
        def test_it():
            x @ x

        class Tests(unittest.TestCase):
            @unittest.expectedFailure
            def test_it(self):
                x @ x
        """,
    "a failure after the body": """
        def test_it():
            try:
                y = x + 1
                model(y)
                assert False, "must raise"
            except RuntimeError:
                pass
        """,
    "a failure without an exception": """
        def test_it():
            try:
                y = x + 1
                y @ y
            except Exception:
                pass
            else:
                raise AssertionError("must raise")
        """,
    "one line": """
        try:
            x @ x
        except RuntimeError as e:
            print("as expected:", e)
        """,
    "a demonstration": """
        try:
            y = torch.ones(5, 3)
            print(x @ y)
            print(y @ x)
        except Exception as e:
            print("Error:", e)
        """,
}
MEANT = {
    "a test that fails": """
        def test_it():
            assert (x @ x).shape == (8, 8)
        """,
    "another exception": """
        try:
            y = x + 1
            y @ y
        except KeyError:
            print("no key")
        """,
    "a training step": """
        def step():
            try:
                loss = model(x).mean()
                loss.backward()
            except Exception as e:
                print(e)
        """,
    "a handler that goes on with something else": """
        try:
            y = x + 1
            y = y @ y
        except Exception:
            y = None
        """,
    "a failure of something else": """
        try:
            y = x @ x
            assert y.ndim == 2
        except Exception:
            y = None
        """,
}


@pytest.mark.parametrize("code", PROVOKED.values(), ids=PROVOKED)
def test_errors_on_purpose_are_silent(code: str, check: Check) -> None:
    assert [d.code for d in check(HEAD + textwrap.dedent(code))] == []


@pytest.mark.parametrize("code", MEANT.values(), ids=MEANT)
def test_other_errors_are_reported(code: str, check: Check) -> None:
    assert {d.code for d in check(HEAD + textwrap.dedent(code))} & {"SF501", "SF503"}
